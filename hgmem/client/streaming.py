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


_Item: TypeAlias = Event | _End


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
        queue: Queue[_Item] = Queue(WAITING)

        def deliver(item: _Item) -> bool:
            try:
                queue.put(item, timeout=_POLL_SECONDS)
            except Full:
                return False
            return True

        worker = _Worker(work, deliver, lambda item: _put_forcibly(queue, item))
        worker.start()
        self._open.add(worker)
        try:
            while not isinstance(item := queue.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            worker.closed.set()
            worker.join()

    async def astreamed(self, work: Work) -> AsyncGenerator[Event, None]:
        """Yield the events of the work without blocking the event loop. Closing the iterator ends the work."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[_Item](WAITING)

        def deliver(item: _Item) -> bool:
            if loop.is_closed():  # nobody can read it any more
                worker.closed.set()
                return False
            putting = asyncio.run_coroutine_threadsafe(queue.put(item), loop)
            while not worker.closed.is_set():
                try:
                    putting.result(_POLL_SECONDS)
                except TimeoutError:
                    continue
                return True
            putting.cancel()
            return False

        def force(item: _End) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put_forcibly, queue, item)

        worker = _Worker(work, deliver, force)
        worker.start()
        self._open.add(worker)
        try:
            while not isinstance(item := await queue.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            worker.closed.set()
            await asyncio.to_thread(worker.join)


class _Worker:
    """Work in its own thread that passes its events to `deliver`.

    `deliver` returns False while the reader is not ready. `force` delivers the end, in place of unread events if
    necessary.
    """

    def __init__(self, work: Work, deliver: Callable[[_Item], bool], force: Callable[[_End], object]) -> None:
        self.closed = threading.Event()
        self.force = force
        self._work = work
        self._deliver = deliver
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="hgmem-stream", daemon=True)

    def start(self) -> None:
        """Start the thread. Everything that `deliver` uses must exist by now."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the work to end, but only for a limited time, as a call may be in progress."""
        self._thread.join(_CLOSE_SECONDS)

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

    def _put(self, item: _Item) -> None:
        while not self.closed.is_set() and not self._deliver(item):
            continue


def _put_forcibly(queue: "Queue[_Item] | asyncio.Queue[_Item]", item: _End) -> None:
    """Put an item into a queue. If the queue is full, drop its oldest item."""
    while True:
        try:
            return queue.put_nowait(item)
        except (Full, asyncio.QueueFull):
            with suppress(Empty, asyncio.QueueEmpty):  # the reader was here first
                queue.get_nowait()
