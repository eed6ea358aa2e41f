"""Streams: work that tells of events, done by a thread of its own, heard by whoever iterates."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from queue import Full, Queue
from typing import TypeAlias
from weakref import WeakSet

from hgmem.errors import HGMemError, UsageError
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


_Item: TypeAlias = Event | _End


class Streams:
    """The streams of one client that are open: they end when the client is closed."""

    def __init__(self) -> None:
        self._open: WeakSet[_Working] = WeakSet()

    def close(self) -> None:
        """End the work of every stream; whoever reads one hears why."""
        for working in list(self._open):
            working.closed.set()
        for working in list(self._open):
            working.join()
            working.force(_End(UsageError("this client is closed: open another one")))

    def streamed(self, work: Work) -> Generator[Event, None, None]:
        """Yield the events of the work; closing the iterator ends it before its next call."""
        queue: Queue[_Item] = Queue(WAITING)

        def deliver(item: _Item) -> bool:
            try:
                queue.put(item, timeout=_PATIENCE)
            except Full:
                return False
            return True

        working = _Working(work, deliver, lambda item: _forced(queue, item))
        working.start()
        self._open.add(working)
        try:
            while not isinstance(item := queue.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            working.closed.set()
            working.join()

    async def astreamed(self, work: Work) -> AsyncGenerator[Event, None]:
        """Yield the events of the work without blocking the event loop; closing the iterator ends it."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[_Item](WAITING)

        def deliver(item: _Item) -> bool:
            if loop.is_closed():  # nobody will ever read it
                working.closed.set()
                return False
            putting = asyncio.run_coroutine_threadsafe(queue.put(item), loop)
            while not working.closed.is_set():
                try:
                    putting.result(_PATIENCE)
                except TimeoutError:
                    continue
                return True
            putting.cancel()
            return False

        def force(item: _End) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_forced, queue, item)

        working = _Working(work, deliver, force)
        working.start()
        self._open.add(working)
        try:
            while not isinstance(item := await queue.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            working.closed.set()
            await asyncio.to_thread(working.join)


class _Working:
    """Work in a thread of its own, whose events `deliver` hands on; that returns false while nobody takes them.

    `force` hands the end on, in place of what nobody has taken.
    """

    def __init__(self, work: Work, deliver: Callable[[_Item], bool], force: Callable[[_End], object]) -> None:
        self.closed = threading.Event()
        self.force = force
        self._work = work
        self._deliver = deliver
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="hgmem-stream", daemon=True)

    def start(self) -> None:
        """Begin; whatever `deliver` needs is there by now."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the work has ended, but not for long: a call may be under way."""
        self._thread.join(_FAREWELL)

    def _run(self) -> None:
        end = _End()
        try:
            self._work(Listener(tell=self._tell, check=self._check))
        except ClosedError:
            pass
        except BaseException as error:
            end = _End(error)
        self._hand_on(end)

    def _tell(self, event: Event) -> None:
        self._hand_on(event)
        self._check()

    def _check(self) -> None:
        if self.closed.is_set():
            raise ClosedError("the stream was closed")

    def _hand_on(self, item: _Item) -> None:
        while not self.closed.is_set() and not self._deliver(item):
            continue


def _forced(queue: "Queue[_Item] | asyncio.Queue[_Item]", item: _End) -> None:
    """Put an item into a queue that may be full: then what was first in it makes room."""
    while True:
        try:
            return queue.put_nowait(item)
        except (Full, asyncio.QueueFull):
            queue.get_nowait()
