"""Run a bounded number of model calls in parallel, and hand out finished ones in groups."""

import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from hgmem.errors import AccessError, BudgetError, ModelError

GROUP = 64  # finished calls that are saved together
EVERY = 2.0  # seconds after which a smaller group is saved

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[Item, Result]):
    """A finished call with its result, or the error that it raised."""

    item: Item
    result: Result | None = None
    error: ModelError | None = None


_Future: TypeAlias = Future[Ended[Item, Result] | None]


class Calls(Generic[Item, Result]):
    """Calls of a function in worker threads, used as a context manager by one thread.

    A `ModelError` ends only its own call. No new call starts once one raised anything else, the budget is spent, the
    model is misconfigured, or as many consecutive calls as there are workers got no reply. `stop` then holds the error.
    Leaving the context waits for running calls.
    """

    def __init__(self, call: Callable[[Item], Result], *, workers: int) -> None:
        self.stop: BaseException | None = None
        self._call = call
        self._workers = workers
        self._unanswered = 0
        self._handed = time.monotonic()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hgmem-call")
        # Ctrl-C may interrupt between any two lines, so these futures are the only record of running calls.
        self._futures: set[_Future[Item, Result]] = set()
        self._queue: SimpleQueue[_Future[Item, Result]] = SimpleQueue()
        self._found: list[Ended[Item, Result]] = []

    def __enter__(self) -> "Calls[Item, Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether a call is running, or its outcome not handed out yet."""
        return bool(self._futures or self._found)

    @property
    def room(self) -> bool:
        """Whether another call should be submitted, so that no thread waits while a group is saved."""
        return self.stop is None and len(self._futures) < GROUP + 2 * self._workers

    def submit(self, item: Item) -> None:
        """Schedule the call in the caller's context, to run as soon as a thread is free."""
        future = self._pool.submit(contextvars.copy_context().run, self._run, item)
        self._futures.add(future)
        future.add_done_callback(self._queue.put)

    def fill(self, waiting: Iterator[Item]) -> bool:
        """Submit calls while there is room, and return whether more may be waiting."""
        while self.room:
            try:
                self.submit(next(waiting))
            except StopIteration:
                return False
        return True

    def run(self, waiting: Iterator[Item], keep: Callable[[Sequence[Ended[Item, Result]]], object]) -> None:
        """Make all calls that are waiting, until one stops them, and give every outcome to `keep`, in groups.

        Those of calls that were running when another one, or an interrupt, stopped the work are among them.
        """
        more = True
        try:
            while self.stop is None and (more or self.busy):
                more = more and self.fill(waiting)
                keep(self.ended())
        finally:
            keep(self.rest())

    def ended(self, *, wait: bool = True) -> list[Ended[Item, Result]]:
        """Return a group of finished calls.

        The group is smaller than `GROUP` if no other call is running, or the last group is `EVERY` seconds old. Without
        `wait`, returns an empty list instead of blocking.
        """
        until = time.monotonic() + EVERY if wait else self._handed + EVERY
        while self._futures and len(self._found) < GROUP:
            left = until - time.monotonic()
            try:
                self._take(self._queue.get(block=wait, timeout=max(0.0, left)))
            except Empty:
                if not wait and left > 0:
                    return []
                break
        return self._handed_out()

    def rest(self) -> list[Ended[Item, Result]]:
        """Cancel calls that have not started, wait for running ones, and return all outcomes."""
        self._pool.shutdown(cancel_futures=True)
        for future in list(self._futures):
            self._take(future)
        return self._handed_out()

    def _handed_out(self) -> list[Ended[Item, Result]]:
        self._handed = time.monotonic()
        found, self._found = self._found, []
        return found

    def _take(self, future: "_Future[Item, Result]") -> None:
        ended = None if future.cancelled() else future.result()
        if future in self._futures and ended is not None:
            self._found.append(ended)
        self._futures.discard(future)

    def _run(self, item: Item) -> Ended[Item, Result] | None:
        """Return the call's outcome, or None if it was not made or stopped everything."""
        if self.stop is not None:
            return None
        try:
            result = self._call(item)
        except (AccessError, BudgetError) as error:
            self._end(error)
        except ModelError as error:
            self._failed(error)
            return Ended(item=item, error=error)
        except BaseException as error:
            self._end(error)
        else:
            self._unanswered = 0
            return Ended(item=item, result=result)
        return None

    def _failed(self, error: ModelError) -> None:
        with self._lock:
            self._unanswered = self._unanswered + 1 if error.retryable else 0
            gone = self._unanswered >= self._workers
        if gone:
            self._end(error)

    def _end(self, error: BaseException) -> None:
        with self._lock:
            self.stop = self.stop or error
