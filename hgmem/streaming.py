"""Streams: work that tells of events, done by a thread of its own, heard by whoever iterates."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import TypeAlias

from hgmem.errors import HGMemError
from hgmem.events import Event, Listener

WAITING = 64  # events that wait for a slow reader; then the work waits
_PATIENCE = 0.1  # seconds between two looks at whether the reader is gone
_FAREWELL = 5.0  # seconds that closing waits for a call that is under way

Work: TypeAlias = Callable[[Listener], object]


class ClosedError(HGMemError):
    """The stream was closed, so the work ends; nobody hears of this but the work."""


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


class _Stream:
    """One piece of work and the queue that its events wait in."""

    def __init__(self, work: Work) -> None:
        self._queue: Queue[Event | _End] = Queue(WAITING)
        self._closed = threading.Event()
        self._work = work
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._run,), name="hgmem-stream", daemon=True
        )
        self._thread.start()

    def get(self) -> Event | None:
        """Return the next event, None at the end; raise what the work raised."""
        item = self._queue.get()
        if isinstance(item, _End):
            self._queue.put(item)  # whoever asks again hears the same
            if item.error is not None:
                raise item.error
            return None
        return item

    def close(self) -> None:
        """Let the work end before its next call, event or token."""
        self._closed.set()
        try:
            while True:
                self._queue.get_nowait()
        except Empty:
            self._queue.put(_End())
        self._thread.join(_FAREWELL)

    def _run(self) -> None:
        end = _End()
        try:
            self._work(Listener(tell=self._tell, check=self._check))
        except ClosedError:
            pass
        except BaseException as error:
            end = _End(error)
        if not self._closed.is_set():
            self._put(end)

    def _tell(self, event: Event) -> None:
        self._check()
        self._put(event)

    def _check(self) -> None:
        if self._closed.is_set():
            raise ClosedError("the stream was closed")

    def _put(self, item: Event | _End) -> None:
        while not self._closed.is_set():
            with suppress(Full):
                self._queue.put(item, timeout=_PATIENCE)
                return


def streamed(work: Work) -> Iterator[Event]:
    """Yield the events of the work; closing the iterator ends it before its next call."""
    stream = _Stream(work)
    try:
        while (event := stream.get()) is not None:
            yield event
    finally:
        stream.close()


async def astreamed(work: Work) -> AsyncIterator[Event]:
    """Yield the events of the work without blocking the event loop; closing the iterator ends it."""
    stream = _Stream(work)
    try:
        while (event := await asyncio.to_thread(stream.get)) is not None:
            yield event
    finally:
        await asyncio.to_thread(stream.close)
