"""Questions: answered whole, or as server-sent events, which are the events of `HGMem.stream`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from hgmem.client.asking import answer_among
from hgmem.errors import ConflictError, HGMemError
from hgmem.service.callers import Asker, Caller, Reader
from hgmem.service.log import say
from hgmem.service.problems import problem_of
from hgmem.service.repetition import Asking, Repeat, asking_now
from hgmem.service.shapes import ANSWER, PASSAGES
from hgmem.values.arguments import AskOptions
from hgmem.values.as_json import written
from hgmem.values.events import Answered, Event, QuestionAccepted

_kept: set[asyncio.Task[None]] = set()  # questions that go on without their readers, each by the name of its memory
PAUSE = 15.0  # seconds of silence after which a comment keeps the connection open
EVENTS = "text/event-stream"
UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
T = TypeVar("T")

router = APIRouter(tags=["questions"])


class Asked(BaseModel):
    """A question, with the options of `HGMem.ask`. With `memory`, that memory is continued."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "Who owned the warehouse?", "steps": 2}]}
    )

    question: str = ""
    system: str | None = None
    recipe: str | None = None
    settings: dict[str, Any] | None = None
    steps: int | None = Field(None, ge=1, le=100)
    filters: dict[str, Any] | None = None
    memory: str | None = None
    at_step: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    answer: bool = True


class Sought(BaseModel):
    """What to find passages for."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "Who owned the warehouse?", "limit": 5}]}
    )

    question: str
    limit: int = Field(10, ge=1, le=100)
    filters: dict[str, Any] | None = None


def json_of(value: object, status: int = 200) -> Response:
    """Return a value as `--json` prints it."""
    return Response(written(value), status, media_type="application/json")


def sent_event(name: str, value: str) -> str:
    """Return a server-sent event with a value in JSON."""
    return f"event: {name}\ndata: {value}\n\n"


async def streamed(
    caller: Caller, text: str, options: AskOptions, *, repeat: str | None = None
) -> AsyncGenerator[Event, None]:
    """Yield the events of a question of the caller's, whose memory is the caller's.

    A question that is repeated with the same `repeat` gives its answer again, or goes on with its memory.
    """
    caller.corpus(options.get("corpus") or "")
    asking = Asking(text, options)
    if repeat:
        asking = await asyncio.to_thread(asking_now, caller, text, options, repeat=repeat)
    if asking.given is not None:
        yield Answered(answer=asking.given)
        return
    fresh = asking.job
    try:
        streamed = caller.store.astream_within(caller.key, asking.text, asking.options, once=asking.once)
        async with aclosing(streamed) as events:
            async for event in events:
                if fresh and isinstance(event, QuestionAccepted):
                    await asyncio.to_thread(caller.store.keep_question, fresh, event)
                    fresh = ""
                yield event
    except HGMemError:
        if fresh:
            await asyncio.to_thread(caller.store.free_question, fresh)
        raise


async def kept(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Yield the events of a question, which goes on when its reader leaves, and until `stop` ends it."""
    arrived: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
    left = asyncio.Event()

    async def read() -> None:
        end: Exception | None = None
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, QuestionAccepted):
                        task.set_name(event.memory)
                    arrived.put_nowait(event)
        except asyncio.CancelledError:
            end = ConflictError("the question was stopped: go on with its memory")
            raise
        except Exception as error:
            end = error
            stopped = isinstance(error, ConflictError)
            if left.is_set() and not stopped and problem_of(error).status_code < 500:
                say(event="failed", error=str(error))  # nobody else is told
        finally:
            arrived.put_nowait(end)

    task = asyncio.create_task(read())
    _kept.add(task)
    task.add_done_callback(_kept.discard)
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        left.set()


async def begun(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Return the same events, once there is the first: an error before it is raised here."""
    first = await anext(events)

    async def every() -> AsyncGenerator[T, None]:
        async with aclosing(events):
            yield first
            async for event in events:
                yield event

    return every()


async def with_pauses(events: AsyncGenerator[T, None]) -> AsyncIterator[T | None]:
    """Yield the events, and None after each pause."""
    waiting: asyncio.Future[T] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(events))
            if not (await asyncio.wait({waiting}, timeout=PAUSE))[0]:
                yield None
                continue
            with suppress(StopAsyncIteration):
                event = waiting.result()
                waiting = None
                yield event
                continue
            return
    finally:
        if waiting:
            waiting.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        await events.aclose()


async def _as_events(caller: Caller, events: AsyncGenerator[Event, None]) -> AsyncIterator[str]:
    try:
        async with aclosing(with_pauses(events)) as paused:  # type: ignore[type-var]
            async for event in paused:
                yield ": still here\n\n" if event is None else sent_event(type(event).__name__, written(event))
    except Exception as error:
        yield sent_event("Problem", bytes(problem_of(error, admin=caller.key.is_admin).body).decode())


@router.post(
    "/corpora/{corpus}/questions",
    response_model=ANSWER,
    responses={200: {"content": {EVENTS: {}}}},
)
async def ask(
    caller: Asker,
    corpus: str,
    asked: Asked,
    accept: Annotated[str, Header()] = "application/json",
    repeat: Repeat = None,
    keep: Annotated[bool, Query(description="Whether it is answered to its end also if the caller leaves.")] = False,
) -> Response:
    """Answer a question: as JSON, or with `Accept: text/event-stream` as events while it is answered.

    The memory stays, and can be continued: with another question, or without one from where it stopped.
    """
    options: Any = {**asked.model_dump(exclude_none=True, exclude={"question"}), "corpus": corpus}
    answering = streamed(caller, asked.question, options, repeat=repeat)
    events = await begun(kept(answering) if keep else answering)
    if EVENTS in accept:
        return StreamingResponse(_as_events(caller, events), media_type=EVENTS, headers=UNBUFFERED)
    return json_of(await answer_among(events))


@router.post("/memories/{memory}/stop", tags=["memories"], status_code=204)
async def stop(caller: Asker, memory: str) -> Response:
    """Stop the question that is being answered in a memory.

    One that was asked of this process with `keep` makes no further call. Others end at their next write. What
    was stored stays, and can be continued.
    """
    uid = await asyncio.to_thread(caller.store.stop, caller.key, memory)
    for task in _kept:
        if task.get_name() == uid:
            task.cancel()
    return Response(status_code=204)


@router.post("/corpora/{corpus}/evidence", response_model=PASSAGES)
def search(caller: Reader, corpus: str, sought: Sought) -> Response:
    """Find the passages that words and meaning rank best, without a model, a memory or an answer."""
    name = caller.corpus(corpus)
    found = caller.client.search(sought.question, limit=sought.limit, filters=sought.filters, corpus=name)
    return json_of({"items": found})
