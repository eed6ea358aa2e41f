"""Streams alone: work that emits events before its thread is checked."""

import asyncio
import threading
import time
from queue import Full, Queue
from typing import Any

import pytest

from hgmem.client.streaming import Streams, _End, _Worker
from hgmem.values.events import AnswerToken, Event, Listener


def telling(listener: Listener) -> None:
    for at in range(3):
        listener.emit(AnswerToken(text=str(at)))


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every new thread run for a while before its starter continues."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.1)

    monkeypatch.setattr(threading.Thread, "start", started)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.usefixtures("late")
def test_work_that_tells_at_once_is_heard_to_its_end() -> None:
    async def heard() -> list[Event]:
        return [event async for event in Streams().astreamed(telling)]

    wanted: list[Any] = [AnswerToken(text=str(at)) for at in range(3)]
    assert list(Streams().streamed(telling)) == wanted
    assert asyncio.run(asyncio.wait_for(heard(), 10)) == wanted


class Emptied(Queue[Any]):
    """A full queue that its reader empties just after a writer found it full."""

    def put_nowait(self, item: Any) -> None:
        try:
            super().put_nowait(item)
        except Full:
            self.get()
            raise


def test_an_end_arrives_where_the_reader_makes_room_at_that_very_moment() -> None:
    worker, end = _Worker(telling, lambda: None), _End()
    worker.queue = Emptied(1)
    worker.queue.put(AnswerToken(text="a"))
    worker.force(end)
    assert worker.queue.get_nowait() is end


def test_work_whose_reader_lost_its_event_loop_ends() -> None:
    ended = threading.Event()

    def endless(listener: Listener) -> None:
        try:
            while True:
                listener.emit(AnswerToken(text="a"))
        finally:
            ended.set()

    async def abandoned() -> Any:
        stream = Streams().astreamed(endless)
        await anext(stream)
        return stream

    loop = asyncio.new_event_loop()
    stream = loop.run_until_complete(abandoned())
    loop.close()
    assert ended.wait(10)
    assert stream
