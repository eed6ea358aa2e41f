import contextvars
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hgmem.models.metering import Meter, measuring, timed


def test_calls_are_counted_by_kind_and_name():
    with measuring() as meter:
        for name in ("evolve", "merge", "evolve"):
            with timed("model", name):
                pass
        with timed("neo4j", "retrieve"):
            pass

    usage = meter.usage()
    assert usage.calls == {"model": {"evolve": 2, "merge": 1}, "neo4j": {"retrieve": 1}}
    assert usage.seconds.keys() == usage.calls.keys()


def test_seconds_of_a_block_are_without_those_of_the_blocks_inside_it(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 5.0, 7.0, 10.0])
    monkeypatch.setattr("hgmem.models.metering.time.perf_counter", lambda: next(clock))
    with measuring() as meter, timed("model", "evolve"), timed("embedding", "document"), timed("neo4j", "read"):
        pass

    assert meter.usage().seconds == {"neo4j": {"read": 3.0}, "embedding": {"document": 3.0}, "model": {"evolve": 4.0}}


def test_blocks_one_after_another_are_both_taken_from_the_one_around_them(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 4.0, 7.0, 10.0])
    monkeypatch.setattr("hgmem.models.metering.time.perf_counter", lambda: next(clock))
    with measuring() as meter, timed("model", "evolve"):
        for _ in range(2):
            with timed("embedding", "query"):
                pass

    assert meter.usage().seconds == {"embedding": {"query": 5.0}, "model": {"evolve": 5.0}}


def test_a_block_that_fails_is_counted():
    with measuring() as meter, pytest.raises(ValueError, match="no"), timed("model", "evolve"):
        raise ValueError("no")

    assert meter.usage().calls == {"model": {"evolve": 1}}


def test_an_enclosing_meter_counts_what_an_inner_one_counts_but_not_the_other_way_round():
    with measuring() as outer:
        with timed("model", "before"):
            pass
        with measuring() as inner, timed("model", "inside"):
            pass
        with timed("model", "after"):
            pass

    assert inner.usage().calls == {"model": {"inside": 1}}
    assert outer.usage().calls == {"model": {"before": 1, "inside": 1, "after": 1}}


def test_where_nobody_measures_nothing_is_kept():
    with timed("model", "evolve"):
        pass
    with measuring() as meter:
        pass

    assert meter.usage().calls == {}


def test_usage_is_a_copy_of_what_was_counted_so_far():
    with measuring() as meter:
        with timed("model", "evolve"):
            pass
        usage = meter.usage()
        with timed("model", "evolve"):
            pass

    assert usage.calls == {"model": {"evolve": 1}}


def test_questions_in_threads_of_their_own_do_not_count_each_others_calls():
    barrier = threading.Barrier(8)

    def question(number):
        with measuring() as meter:
            barrier.wait()
            for _ in range(number):
                with timed("model", f"task{number}"):
                    pass
        return meter.usage().calls

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(question, range(1, 9)))

    assert found == [{"model": {f"task{number}": number}} for number in range(1, 9)]


def test_a_thread_that_carries_the_context_on_counts_for_it():
    with measuring() as meter, ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, _once).result()

    assert meter.usage().calls == {"model": {"evolve": 1}}


def _once():
    with timed("model", "evolve"):
        pass


def test_no_call_is_lost_where_many_threads_count_on_one_meter_while_it_is_read():
    meter = Meter()
    rounds = 500

    def count(thread):
        for at in range(rounds):
            meter.add("neo4j", "shared", 1.0)
            meter.add("neo4j", f"{thread}-{at}", 1.0)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            counting = [pool.submit(count, thread) for thread in range(4)]
            while not all(future.done() for future in counting):
                meter.usage()
    finally:
        sys.setswitchinterval(before)

    assert meter.usage().calls["neo4j"]["shared"] == 4 * rounds
    assert meter.usage().seconds["neo4j"]["shared"] == 4.0 * rounds
