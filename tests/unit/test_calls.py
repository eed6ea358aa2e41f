"""Concurrent calls, with Ctrl-C at the worst moment."""

import time

from hgmem.corpus.parallel_calls import EVERY, Calls
from hgmem.errors import BudgetError


def test_an_outcome_that_an_interrupt_kept_from_being_taken_is_among_the_rest() -> None:
    with Calls(lambda item: item, workers=2) as calls:
        for item in range(3):
            calls.submit(item)
        calls._queue.get(timeout=5)  # as if Ctrl-C came between this line and the next

        assert sorted(ended.result for ended in calls.rest()) == [0, 1, 2]
        assert not calls.busy


def test_what_had_not_begun_is_called_off_and_waited_for_by_nobody() -> None:
    began: list[int] = []
    with Calls(began.append, workers=1) as calls:
        for item in range(200):
            calls.submit(item)
        ended = calls.rest()

    assert len(ended) == len(began) <= 200
    assert not calls.busy


def test_what_was_running_when_a_budget_ended_is_kept() -> None:
    def slow(item: int) -> int:
        if item == 3:
            raise BudgetError("the budget is used up")
        time.sleep(EVERY + 0.5)  # longer than the wait for a group
        return item

    kept: list[int | None] = []
    with Calls(slow, workers=4) as calls:
        calls.run(iter(range(10)), lambda ended: kept.extend(one.result for one in ended))

    assert sorted(kept) == [0, 1, 2]
    assert isinstance(calls.stop, BudgetError)
