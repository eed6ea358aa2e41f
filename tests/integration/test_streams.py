"""Events during a question, and async variants of methods."""

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting

from hgmem import HGMem, Settings
from hgmem.errors import ModelError, UsageError
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, PlanReply
from hgmem.testing import ScriptedModel
from hgmem.values.events import (
    Answered,
    AnswerToken,
    EvidenceFound,
    OperationApplied,
    Planned,
    QuestionAccepted,
    StepStarted,
)

Open = Callable[..., HGMem]


class Writing(ScriptedModel):
    """A scripted model that streams its answers."""

    def stream(self, task: Any) -> Iterator[str]:
        yield from self.reply(task).text.split(" ")


def test_the_events_tell_the_whole_question_in_order(letters: Any) -> None:
    events = list(letters().stream(QUESTION, steps=2))
    kinds = [type(event).__name__ for event in events]

    assert kinds == [
        "QuestionAccepted",
        *("StepStarted", "EvidenceFound", "OperationApplied", "OperationApplied", "Planned"),
        *("StepStarted", "EvidenceFound", "OperationApplied", "OperationApplied", "Planned"),
        *("AnswerToken", "Answered"),
    ]


def test_events_hold_what_the_stored_memory_holds(letters: Any) -> None:
    client = letters()
    events = list(client.stream(QUESTION, steps=2))
    answer = events[-1].answer
    memory = client.memory(answer.memory)
    texts = {point.uid: point.description for point in answer.points}

    assert events[0] == QuestionAccepted(question=QUESTION, corpus=client.corpus, memory=answer.memory)
    assert [one.subqueries for one in events if isinstance(one, StepStarted)] == [
        tuple(found.subquery for found in step.retrieved) for step in memory.steps
    ]
    assert [one.operation for one in events if isinstance(one, OperationApplied)] == [
        operation for step in memory.steps for operation in step.operations
    ]
    assert all(one.description == texts[one.operation.point] for one in events if isinstance(one, OperationApplied))
    assert [one.subqueries for one in events if isinstance(one, Planned)] == [step.planned for step in memory.steps]
    found = next(one for one in events if isinstance(one, EvidenceFound))
    assert found.entities == len(found.names) == len(memory.steps[0].retrieved[0].entities)
    assert answer.text == memory.answers[0].text


def test_what_a_reply_loses_is_told_with_its_reason(letters: Any) -> None:
    evolve = EvolveReply(insert=(Insertion(entities=(), description="Of nobody."),))
    events = list(letters(evolve=lambda _: evolve).stream(QUESTION, steps=1))
    (drop,) = [one.operation for one in events if isinstance(one, OperationApplied)]

    assert (drop.kind, drop.reason) == ("drop", "insert: no entity named")


def test_a_model_that_writes_piece_by_piece_is_heard_so_and_its_answer_is_the_pieces_together(
    open_client: Open,
) -> None:
    model = Writing(dict(wanting()._replies))
    client = open_client(model=model)
    client.add_graph(LETTERS)
    events = list(client.stream(QUESTION, steps=1))

    assert [event.text for event in events if isinstance(event, AnswerToken)] == ["Anna", "sold", "it", "[1]."]
    assert events[-1].answer.text == "Annasoldit[1]."


def test_closing_a_stream_stops_calls_and_leaves_a_memory_that_goes_on(letters: Any) -> None:
    client = letters()
    stream = client.stream(QUESTION, steps=3)
    for event in stream:
        if isinstance(event, Planned):
            break
    stream.close()
    asked = len(client.model.tasks)
    time.sleep(0.3)
    (summary,) = client.memories()

    assert len(client.model.tasks) == asked
    assert "answer" not in [task.name for task in client.model.tasks]
    assert summary.status == "interrupted"
    assert summary.steps in (1, 2)
    assert client.ask(memory=summary.uid, steps=1).status == "answered"


def test_closing_a_stream_before_it_began_or_after_it_ended_is_fine(letters: Any) -> None:
    client = letters()
    client.stream(QUESTION).close()
    ended = client.stream(QUESTION, steps=1)
    list(ended)
    ended.close()
    assert next(ended, None) is None


def test_an_error_in_the_question_is_raised_where_the_stream_is_read(letters: Any) -> None:
    client = letters(step=lambda _: ModelError("the model is gone"))
    heard = []
    with pytest.raises(ModelError, match="the model is gone"):
        heard.extend(client.stream(QUESTION, steps=2))
    with pytest.raises(UsageError, match="the question is empty"):
        next(client.stream(" "))


def test_a_reader_that_is_slow_holds_the_work_back_and_loses_nothing(letters: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("hgmem.client.streaming.WAITING", 1)
    events = []
    for event in letters().stream(QUESTION, steps=2):
        time.sleep(0.02)
        events.append(event)

    assert isinstance(events[-1], Answered)
    assert len(events) == 13


def test_many_streams_at_once_tell_each_its_own(letters: Any) -> None:
    client = letters(plan=lambda _: PlanReply(judgement="sufficient"))
    heard: dict[str, list[Any]] = {}
    threads = [
        threading.Thread(target=lambda text=f"Question {at}?": heard.update({text: list(client.stream(text))}))
        for at in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len({events[0].memory for events in heard.values()}) == 6
    assert all(events[0].question == text == events[-1].answer.question for text, events in heard.items())


# Async variants -----------------------------------------------------------------------------------------------


def test_every_public_method_that_reaches_out_has_a_twin_of_the_same_signature() -> None:
    own = {name: method for name, method in inspect.getmembers(HGMem, inspect.isfunction) if name[0] != "_"}
    reaches_nothing, otherwise_async = {"system", "systems", "verbs"}, {"browse", "close", "stream"}
    plain = {name for name in own if not (name.startswith("a") and name[1:] in own)}
    plain -= reaches_nothing | otherwise_async

    assert plain >= {"add", "ask", "memory", "memories", "lineage", "status", "delete", "export", "adopt", "replay"}
    for name in plain:
        assert inspect.signature(own[f"a{name}"]) == inspect.signature(own[name])
        assert inspect.iscoroutinefunction(own[f"a{name}"])


def test_twins_return_what_the_methods_return_while_the_event_loop_goes_on(letters: Any) -> None:
    def slowly(_: object) -> AnswerReply:
        time.sleep(0.5)
        return AnswerReply(text="Anna [1].")

    client = letters(answer=slowly)

    async def both() -> tuple[Any, int]:
        beats = 0
        task = asyncio.create_task(client.aask(QUESTION, steps=1))
        while not task.done():
            await asyncio.sleep(0.01)
            beats += 1
        return task.result(), beats

    answer, beats = asyncio.run(both())
    assert answer.text == "Anna [1]."
    assert beats > 20


def test_an_asynchronous_stream_tells_the_same_and_ends_early_alike(letters: Any) -> None:
    client = letters()

    async def heard(stop: type | None) -> list[Any]:
        events = []
        stream: AsyncIterator[Any] = client.astream(QUESTION, steps=2)
        async for event in stream:
            events.append(event)
            if stop and isinstance(event, stop):
                await stream.aclose()  # type: ignore[attr-defined]
        return events

    whole = asyncio.run(heard(None))
    assert [type(event) for event in whole] == [type(event) for event in client.stream(QUESTION, steps=2)]
    part = asyncio.run(heard(StepStarted))
    assert isinstance(part[-1], StepStarted)
    assert client.memory(part[0].memory).status == "interrupted"


def test_cancelled_streams_let_go_at_once_however_many_there_are(letters: Any) -> None:
    def patiently(_: object) -> EvolveReply:
        time.sleep(3)
        return EvolveReply()

    client = letters(evolve=patiently)
    loops = 8

    async def cancelled() -> float:
        async def reading() -> None:
            async for _ in client.astream(QUESTION, steps=1):
                pass

        tasks = [asyncio.create_task(reading()) for _ in range(loops)]
        await asyncio.sleep(1.0)
        began = time.monotonic()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return time.monotonic() - began

    assert asyncio.run(cancelled()) < 8
    assert {memory.status for memory in client.memories()} <= {"interrupted"}


def test_a_slow_reader_takes_no_time_of_the_models(open_client: Open) -> None:
    model = Writing(dict(wanting()._replies))
    client = open_client(model=model)
    client.add_graph(LETTERS)
    events = []
    for event in client.stream(QUESTION, steps=1):
        if isinstance(event, AnswerToken):
            time.sleep(0.2)
        events.append(event)

    assert events[-1].answer.usage.seconds["model"]["answer"] < 0.2


def test_closing_the_client_ends_its_streams_and_their_memories_go_on(letters: Any, settings: Settings) -> None:
    other = letters()
    own = wanting(plan=lambda _: time.sleep(0.5) or ModelError("too late"))
    client = HGMem.open(other.corpus, model=own, **settings.model_dump(exclude_none=True, exclude={"model"}))
    stream = client.stream(QUESTION, steps=3)
    memory = next(stream).memory
    heard: list[Any] = []

    def reading() -> None:
        try:
            heard.extend(stream)
        except UsageError as error:
            heard.append(error)

    thread = threading.Thread(target=reading)
    thread.start()
    time.sleep(0.2)
    client.close()
    thread.join(20)

    assert isinstance(heard[-1], UsageError)
    assert "this client is closed" in str(heard[-1])
    assert other.memory(memory).status == "interrupted"


def test_an_awaited_question_that_is_cancelled_asks_no_more(letters: Any) -> None:
    client = letters(evolve=lambda _: time.sleep(0.5) or EvolveReply())

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.aask(QUESTION, steps=3), 0.2)

    asyncio.run(cancelled())
    asked = len(client.model.tasks)
    time.sleep(1.0)
    assert len(client.model.tasks) == asked
    assert "answer" not in [task.name for task in client.model.tasks]
    assert {memory.status for memory in client.memories()} == {"interrupted"}
