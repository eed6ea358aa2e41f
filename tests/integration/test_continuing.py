"""Continued memories: another question, an interrupted one, an answer at an earlier step, concurrent callers."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting

from hgmem import HGMem, UsageError
from hgmem.errors import ConflictError, ModelError
from hgmem.graph.memory import point_scores
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.recipes import PAPER
from hgmem.systems.hgmem.replies import Concern, EvolveReply, Insertion, MergeReply, PlanReply
from hgmem.testing import ScriptedModel

Open = Callable[..., HGMem]
FOLLOW_UP = "And what did Cleo leave?"


def failing(errors: list[ModelError], reply: object) -> Callable[[object], object]:
    """Return a reply that raises the errors first."""

    def replying(_: object) -> object:
        if errors:
            raise errors.pop()
        return reply

    return replying


@pytest.fixture
def letters(open_client: Open) -> Callable[..., tuple[HGMem, ScriptedModel]]:
    """Opens a client on the letters; by default its model uses every step."""

    def opening(**replies: Any) -> tuple[HGMem, ScriptedModel]:
        model = wanting(**replies)
        client = open_client(model=model)
        client.add_graph(LETTERS)
        return client, model

    return opening


def test_a_follow_up_goes_on_after_the_old_steps_with_the_old_points_at_hand(letters: Any, open_client: Open) -> None:
    client, model = letters()
    first = client.ask(QUESTION, steps=2)
    asked = len(model.tasks)
    second = client.ask(FOLLOW_UP, memory=first.memory, steps=2)
    looked, begun = model.tasks[asked : asked + 2]

    assert second.memory == first.memory
    assert [step.number for step in second.steps] == [1, 2, 3, 4]
    assert [step.question for step in second.steps] == [QUESTION] * 2 + [FOLLOW_UP] * 2
    assert second.steps[2].retrieved[0].subquery.text == FOLLOW_UP
    assert (looked.name, looked.question, begun.name, begun.question) == ("clues", FOLLOW_UP, "step", FOLLOW_UP)
    assert {point.uid for point in begun.memory.points} == {point.uid for point in first.points if point.alive(2)}
    assert {point.uid for point in second.points} > {point.uid for point in first.points}


def test_both_questions_keep_their_own_answers_at_their_own_steps(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=2)
    client.ask(FOLLOW_UP, memory=first.memory, steps=1)
    memory = client.memory(first.memory)

    assert [(one.question, one.step) for one in memory.answers] == [(QUESTION, 2), (FOLLOW_UP, 3)]
    assert (memory.status, memory.step) == ("answered", 3)
    assert [point.uid for point in client.memory(first.memory, step=2).points] == [
        point.uid for point in first.points if point.alive(2)
    ]


def test_the_first_search_of_a_follow_up_may_find_what_memory_covers_already(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=2)
    covered = {entity.uid for point in first.points if point.alive(2) for entity in point.entities}
    every = {"retrieval.entities": 9}
    second = client.ask(QUESTION + " Again?", memory=first.memory, steps=1, settings=every)

    assert covered & {hit.uid for one in second.steps[-1].retrieved for hit in one.entities}


def test_how_near_points_are_is_exact_and_of_the_living_of_one_memory(letters: Any) -> None:
    said = itertools.count()
    client, _ = letters(
        evolve=lambda _: EvolveReply(
            insert=tuple(Insertion(entities=("Anna", "Mill"), description=f"Sale {next(said)}.") for _ in range(10))
        )
    )
    first = client.ask(QUESTION, steps=3)
    for _ in range(3):
        client.ask(QUESTION, steps=2)  # other memories
    living = [point for point in first.points if point.alive(3)]
    services = client._services(None)
    query = services.embed([QUESTION], kind="query")[0]
    exact = services.embed([point.description for point in living], kind="document") @ query
    scores = point_scores(
        services.database, corpus=client.corpus, memory=first.memory, query=query, most=len(first.points)
    )

    assert len(first.points) > len(living) > 15
    assert scores == pytest.approx({point.uid: float(one) for point, one in zip(living, exact, strict=True)}, abs=1e-6)


def test_the_usage_of_a_follow_up_is_its_own(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=2)
    second = client.ask(FOLLOW_UP, memory=first.memory, steps=1)

    assert second.usage.calls["model"] == {"clues": 1, "evolve": 1, "answer": 1}


def test_a_question_that_failed_goes_on_where_it_stopped_with_what_its_plan_left_to_ask(letters: Any) -> None:
    gone = [ModelError("the model is gone", retryable=True)]
    client, _ = letters(merge=failing(gone, MergeReply()))
    with pytest.raises(ModelError, match="the model is gone") as error:
        client.ask(QUESTION, steps=3)
    memory = str(error.value.memory)
    before = client.memory(memory)
    answer = client.ask(memory=memory, steps=2)

    assert (before.status, len(before.steps)) == ("interrupted", 1)
    assert answer.question == QUESTION
    assert [one.subquery.text for one in answer.steps[1].retrieved] == [one.text for one in before.steps[0].planned]
    assert [step.number for step in answer.steps] == [1, 2, 3]


@pytest.mark.parametrize(("told", "steps"), [({}, [1, 2, 3]), ({"steps": 1}, [1, 2]), ({"steps": 3}, [1, 2, 3, 4])])
def test_a_question_that_failed_takes_the_steps_that_it_had_left_or_as_many_as_it_is_told(
    letters: Any, told: dict[str, int], steps: list[int]
) -> None:
    places = itertools.count()
    client, _ = letters(
        merge=failing([ModelError("the model is gone")], MergeReply()),
        plan=lambda _: PlanReply(judgement="global", concerns=(Concern(text=f"place {next(places)}"),)),
    )
    with pytest.raises(ModelError) as error:
        client.ask(QUESTION, steps=3)
    answer = client.ask(memory=str(error.value.memory), **told)

    assert [step.number for step in answer.steps] == steps


def test_a_question_stopped_by_its_own_limit_of_steps_plans_anew_and_goes_on(letters: Any) -> None:
    client, model = letters()
    first = client.ask(QUESTION, steps=1)
    asked = len(model.tasks)
    second = client.ask(memory=first.memory, steps=1)

    assert [task.name for task in model.tasks[asked:]] == ["plan", "subqueries", "evolve", "answer"]
    assert [step.number for step in second.steps] == [1, 2]
    assert second.question == QUESTION


def test_a_question_whose_answer_failed_is_answered_without_another_step(letters: Any) -> None:
    client, model = letters(answer=failing([ModelError("gone")], AnswerReply(text="Anna [1].")))
    with pytest.raises(ModelError) as error:
        client.ask(QUESTION, steps=1)
    asked = len(model.tasks)
    answer = client.ask(memory=str(error.value.memory), steps=3)

    assert [task.name for task in model.tasks[asked:]] == ["answer"]
    assert [step.number for step in answer.steps] == [1]


def test_a_question_that_was_sufficient_is_answered_again_without_a_step(letters: Any) -> None:
    client, model = letters(plan=lambda _: PlanReply(judgement="sufficient"))
    first = client.ask(QUESTION)
    second = client.ask(memory=first.memory)

    assert len(second.steps) == len(first.steps) == 1
    assert [task.name for task in model.tasks] == ["clues", "step", "answer", "answer"]
    assert [one.step for one in client.memory(first.memory).answers] == [1, 1]


def test_an_answer_at_an_earlier_step_draws_on_what_memory_was_and_had_read_then(letters: Any) -> None:
    client, model = letters()
    first = client.ask(QUESTION, steps=3)
    at_one = client.ask(memory=first.memory, at_step=1)
    task = model.tasks[-1]
    read = {hit.uid for one in first.steps[0].retrieved for hit in one.chunks}
    supports = {uid for point in task.memory.points for uid in point.chunks}

    assert at_one.step == 1
    assert len(at_one.steps) == 3
    assert at_one.usage.calls["model"] == {"answer": 1}
    assert [point.uid for point in task.memory.points] == [point.uid for point in first.points if point.alive(1)]
    assert {chunk.uid for chunk in task.passages} <= read | supports
    assert [one.step for one in client.memory(first.memory).answers] == [3, 1]
    assert client.memory(first.memory).status == "answered"


def test_another_question_can_be_answered_from_a_stored_memory_without_a_step(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=2)
    other = client.ask(FOLLOW_UP, memory=first.memory, at_step=2)

    assert (other.question, other.step, len(other.steps)) == (FOLLOW_UP, 2, 2)


def test_two_callers_of_one_memory_the_second_gets_a_conflict_and_nothing_interleaves(
    letters: Any, open_client: Open
) -> None:
    started, go_on = threading.Event(), threading.Event()
    held: list[str] = []

    def slowly(_: object) -> AnswerReply:
        if held:
            started.set()
            go_on.wait(30)
        return AnswerReply(text="Anna sold it [1].")

    client, _ = letters(answer=slowly)
    first = client.ask(QUESTION, steps=1)
    held.append(first.memory)
    thread = threading.Thread(target=lambda: client.ask(FOLLOW_UP, memory=first.memory, steps=1))
    thread.start()
    assert started.wait(30)
    other = open_client(model=wanting())
    with pytest.raises(ConflictError, match=f"memory '{first.memory}' is in use by another run"):
        other.ask("Me too?", memory=first.memory, steps=1)
    go_on.set()
    thread.join(30)
    memory = client.memory(first.memory)

    assert [step.question for step in memory.steps] == [QUESTION, FOLLOW_UP]
    assert [one.question for one in memory.answers] == [QUESTION, FOLLOW_UP]


def test_a_memory_whose_holder_died_can_be_taken_over_once_its_claim_ran_out(letters: Any, corpus: str) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=1)
    driver = client._database._driver

    def silent_for(seconds: int) -> None:
        driver.execute_query(
            "MATCH (m:Memory {uid: $m}) SET m.run = 'dead', m.status = 'running', "
            "m.heartbeat = datetime() - duration({seconds: $seconds})",
            m=first.memory,
            seconds=seconds,
        )

    silent_for(30)
    with pytest.raises(ConflictError):
        client.ask(FOLLOW_UP, memory=first.memory, steps=1)
    silent_for(61)
    assert len(client.ask(FOLLOW_UP, memory=first.memory, steps=1).steps) == 2


def test_a_follow_up_that_fails_before_its_first_step_leaves_the_memory_as_it_was(letters: Any) -> None:
    errors: list[ModelError] = []
    said = EvolveReply(insert=(Insertion(entities=("Bo",), description="Bo."),))
    client, _ = letters(evolve=failing(errors, said))
    first = client.ask(QUESTION, steps=1)
    errors.append(ModelError("gone"))
    with pytest.raises(ModelError):
        client.ask(FOLLOW_UP, memory=first.memory)

    memory = client.memory(first.memory)
    assert (memory.status, len(memory.steps), len(memory.answers)) == ("answered", 1, 1)


def test_a_memory_goes_on_with_the_settings_it_was_made_with_unless_told_otherwise(letters: Any) -> None:
    client, model = letters()
    first = client.ask(QUESTION, settings={"calls": "separate", "clues": []}, steps=1)
    asked = len(model.tasks)
    client.ask(FOLLOW_UP, memory=first.memory, steps=2)
    kept = [task.name for task in model.tasks[asked:]]
    asked = len(model.tasks)
    again = {"only_new": False}  # so small a corpus has nothing new for the last step
    client.ask("And then?", memory=first.memory, recipe="default", settings=again, steps=2)

    assert kept == ["evolve", "merge", "plan", "subqueries", "evolve", "merge", "answer"]
    assert [task.name for task in model.tasks[asked:]] == ["clues", "step", "evolve", "answer"]


def test_what_a_merge_does_stays_as_it_is_for_the_life_of_a_memory(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=1)
    with pytest.raises(
        UsageError,
        match="merge=replace and cannot be continued with merge=add: choose a recipe that has replace, or ask",
    ):
        client.ask(FOLLOW_UP, memory=first.memory, recipe=PAPER)


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"memory": "m-nowhere"}, "memory, point or answer 'm-nowhere' not found"),
        ({"at_step": 1}, "at_step= (--at-step) needs a memory"),
        ({"memory": "MINE", "at_step": 7}, "has no step 7: its last one is 1"),
        ({"memory": "MINE", "at_step": 0}, "0 is not a valid step"),
        ({"memory": "MINE", "corpus": "another"}, "corpus 'another' has no memory"),
        ({"memory": "POINT"}, "is a point or an answer of memory"),
        ({"memory": 3}, "memory=3 is not a memory uid: pass one, such as answer.memory"),
        ({"memory": "MINE", "at_step": 1, "steps": 2}, "at_step= (--at-step) and steps= (--steps) cannot be combined"),
        (
            {"memory": "MINE", "at_step": 1, "filters": {"title": "a"}},
            "at_step= (--at-step) and filters= (--where) cannot be combined",
        ),
        ({"memory": "MINE", "system": "naive"}, "a memory of system 'naive' cannot be continued"),
        ({"memory": "NAIVE"}, "was made by system 'naive', which cannot be continued"),
    ],
)
def test_what_cannot_go_on_is_refused_with_the_reason(how: dict[str, Any], what: str, letters: Any) -> None:
    client, _ = letters()
    mine = client.ask(QUESTION, steps=1)
    naive = client.ask(QUESTION, system="naive")
    known = {"MINE": mine.memory, "POINT": mine.points[0].uid, "NAIVE": naive.memory}
    given = {name: known.get(value, value) if isinstance(value, str) else value for name, value in how.items()}
    with pytest.raises(UsageError) as error:
        client.ask(FOLLOW_UP, **given)

    assert what in str(error.value)
    assert [len(one.steps) for one in map(client.memory, (mine.memory, naive.memory))] == [1, 1]


def test_a_memory_without_a_whole_step_goes_on_from_nothing(letters: Any) -> None:
    client, _ = letters(
        evolve=failing([ModelError("gone")], EvolveReply()),
        plan=lambda _: PlanReply(judgement="global", concerns=(Concern(text="x"),)),
    )
    with pytest.raises(ModelError):
        client.ask(QUESTION, steps=1)
    (summary,) = client.memories()
    answer = client.ask(memory=summary.uid, steps=1)

    assert [step.number for step in answer.steps] == [1]
    assert answer.question == QUESTION


# The last question --------------------------------------------------------------------------------------------


def test_without_a_question_the_last_one_goes_on_not_the_first(letters: Any) -> None:
    errors: list[ModelError] = []
    client, _ = letters(clues=failing(errors, CluesReply()))
    first = client.ask(QUESTION, steps=1)
    client.ask(FOLLOW_UP, memory=first.memory, steps=1)
    again = client.ask(memory=first.memory, steps=1)
    assert (again.question, again.steps[-1].question) == (FOLLOW_UP, FOLLOW_UP)
    assert client.ask(memory=first.memory, at_step=1).question == QUESTION

    errors.append(ModelError("gone"))
    with pytest.raises(ModelError):
        client.ask("And Eve?", memory=first.memory, steps=1)
    assert client.ask(memory=first.memory, steps=1).question == "And Eve?"


def test_an_earlier_question_asked_again_asks_for_itself_not_for_what_another_one_left(letters: Any) -> None:
    client, _ = letters()
    first = client.ask(QUESTION, steps=1)
    client.ask(FOLLOW_UP, memory=first.memory, steps=2)
    again = client.ask(QUESTION, memory=first.memory, steps=1)

    assert [one.subquery.text for one in again.steps[-1].retrieved] == [QUESTION]


def test_nothing_is_invented_where_there_is_still_no_evidence(letters: Any, open_client: Open) -> None:
    model = wanting()
    client = open_client(model=model)
    client.add_graph(replace(LETTERS, documents=(), chunks=(), entities=(), relations=()))
    first = client.ask(QUESTION)
    again = client.ask(memory=first.memory)
    at_one = client.ask(memory=first.memory, at_step=1)

    assert {one.status for one in (first, again, at_one)} == {"no_evidence"}
    assert model.tasks == []


def test_what_a_follow_up_finds_is_not_crowded_out_by_the_passages_of_the_question_before(letters: Any) -> None:
    client, model = letters()
    first = client.ask(QUESTION, steps=2, settings={"answer_chunks": 3})
    client.ask("What does Eve count?", memory=first.memory, steps=1)
    best = client.memory(first.memory).steps[-1].retrieved[0].chunks[0].uid

    assert best in {chunk.uid for chunk in model.tasks[-1].passages}
