"""Work in threads of its own: streams, whose caller iterates over the events, and methods that are awaited."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from queue import Empty, Full, Queue
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

from hgmem.errors import HGMemError, UsageError
from hgmem.values.events import Event, Listener

WAITING = 64  # events queued for a slow reader before the work waits
_POLL_SECONDS = 0.1  # seconds between checks whether the reader has left
_CLOSE_SECONDS = 5.0  # seconds that closing waits for a call in progress

Work: TypeAlias = Callable[[Listener], object]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def async_variant(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """Return the async variant of a method, which runs it in a thread without blocking the event loop."""

    @wraps(method)
    async def awaited(self: S, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *arguments, **named)

    return awaited


class ClosedError(HGMemError):
    """Raised inside the work to end it after its stream was closed. It never reaches the caller."""


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


class Streams:
    """The open streams of one client. They end when the client is closed."""

    def __init__(self) -> None:
        self._open: WeakSet[_Worker] = WeakSet()

    def close(self) -> None:
        """End the work of every stream. Its reader gets a `UsageError`."""
        for worker in list(self._open):
            worker.closed.set()
        for worker in list(self._open):
            worker.join()
            worker.force(_End(UsageError("this client is closed: open a new one")))

    def streamed(self, work: Work) -> Generator[Event, None, None]:
        """Yield the events of the work. Closing the iterator ends the work before its next call."""
        worker = self._started(work)
        try:
            while not isinstance(item := worker.queue.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            worker.closed.set()
            worker.join()

    async def astreamed(self, work: Work) -> AsyncGenerator[Event, None]:
        """Yield the events of the work without blocking the event loop. Closing the iterator ends the work."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        worker = self._started(work, lambda: loop.call_soon_threadsafe(arrived.set))
        try:
            while not isinstance(item := await worker.next(arrived), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            worker.closed.set()
            await asyncio.to_thread(worker.join)

    def _started(self, work: Work, wake: Callable[[], object] = lambda: None) -> "_Worker":
        worker = _Worker(work, wake)
        self._open.add(worker)
        worker.thread.start()
        return worker


class _Worker:
    """Work in its own thread, with a queue of its events. It calls `wake` after each, such as to wake an event loop."""

    def __init__(self, work: Work, wake: Callable[[], object]) -> None:
        self.closed = threading.Event()
        self.queue: Queue[Event | _End] = Queue(WAITING)
        self._work = work
        self._wake = wake
        context = contextvars.copy_context()
        self.thread = threading.Thread(target=context.run, args=(self._run,), name="hgmem-stream", daemon=True)

    def join(self) -> None:
        """Wait for the work to end, but only for a limited time, as a call may be in progress."""
        self.thread.join(_CLOSE_SECONDS)

    async def next(self, arrived: asyncio.Event) -> Event | _End:
        """Return the next item once there is one. `arrived` is set whenever one was put."""
        while True:
            arrived.clear()
            with suppress(Empty):
                return self.queue.get_nowait()
            await arrived.wait()

    def force(self, item: _End) -> None:
        """Put an item into the queue. If it is full, drop its oldest item."""
        while True:
            try:
                self.queue.put_nowait(item)
            except Full:
                with suppress(Empty):  # the reader was here first
                    self.queue.get_nowait()
            else:
                return self._woken()

    def _run(self) -> None:
        end = _End()
        try:
            self._work(Listener(emit=self._emit, check=self._check))
        except ClosedError:
            pass
        except BaseException as error:
            end = _End(error)
        self._put(end)

    def _emit(self, event: Event) -> None:
        self._put(event)
        self._check()

    def _check(self) -> None:
        if self.closed.is_set():
            raise ClosedError("the stream was closed")

    def _put(self, item: Event | _End) -> None:
        done = False
        while not done and not self.closed.is_set():
            with suppress(Full):
                self.queue.put(item, timeout=_POLL_SECONDS)
                done = True
            self._woken()  # also where the queue is full: a reader that is gone is noticed

    def _woken(self) -> None:
        try:
            self._wake()
        except RuntimeError:  # the event loop is closed, so nobody can read any more
            self.closed.set()
