"""Model calls side by side: a bounded number under way, ended ones handed out while the others go on."""

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from hgmem.errors import AccessError, BudgetError, ModelError

GROUP = 64  # calls whose outcome is saved together
EVERY = 2.0  # seconds after which fewer are saved too

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[Item, Result]):
    """A call that was made: what came of it, or why nothing did."""

    item: Item
    result: Result | None = None
    error: ModelError | None = None


_Future: TypeAlias = Future[Ended[Item, Result] | None]


class Calls(Generic[Item, Result]):
    """Calls of a function in threads; used by one thread, as a context manager that waits for those that run.

    A `ModelError` is how one call ended. No further call is made once one ended in anything else, the budget is
    spent, the model can't be used as it is set, or as many in a row as there are threads found nobody to answer: then
    `stop` says why.
    """

    def __init__(self, call: Callable[[Item], Result], *, workers: int) -> None:
        self.stop: BaseException | None = None
        self._call = call
        self._workers = workers
        self._unanswered = 0
        self._handed = time.monotonic()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hgmem-call")
        # Ctrl-C may come between any two steps, so what is under way is what these futures say, not a count.
        self._futures: set[_Future[Item, Result]] = set()
        self._queue: SimpleQueue[_Future[Item, Result]] = SimpleQueue()
        self._found: list[Ended[Item, Result]] = []

    def __enter__(self) -> "Calls[Item, Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or its outcome not handed out."""
        return bool(self._futures or self._found)

    @property
    def room(self) -> bool:
        """Whether another call is wanted, so that no thread waits while a group is saved."""
        return self.stop is None and len(self._futures) < GROUP + 2 * self._workers

    def submit(self, item: Item) -> None:
        """Have the call made as soon as a thread is free, in the caller's context."""
        future = self._pool.submit(contextvars.copy_context().run, self._run, item)
        self._futures.add(future)
        future.add_done_callback(self._queue.put)

    def ended(self, *, wait: bool = True) -> list[Ended[Item, Result]]:
        """Return a group of calls that ended; fewer where no other is under way, or the last time is a while ago.

        Without `wait`, nothing is returned where that is not so yet.
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
        """Return all the others once the running ones have ended; what had not begun is called off."""
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
        """Return how the call ended; None where it was not made, or all ends with it."""
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
