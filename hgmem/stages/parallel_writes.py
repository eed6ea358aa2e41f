"""Write to one corpus by several threads, so that no two of them touch one node at a time."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from hgmem.corpus.paging import batches
from hgmem.graph.corpus import renew_corpus
from hgmem.graph.database import Row, Transaction
from hgmem.services import Services

T = TypeVar("T")


class Writers:
    """Threads that write to a leased corpus, used as a context manager by one thread.

    The lease is checked at the end of each transaction: whoever checks it locks the corpus, and another thread would
    wait for the whole transaction. `repeated` counts attempts that were repeated, as after a deadlock.
    """

    def __init__(self, services: Services, run: str, number: int) -> None:
        self.repeated = 0
        self._services = services
        self._run = run
        self._number = number
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="hgmem-write")
        self._lock = threading.Lock()

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement, run in a transaction of its own."""
        begun = []

        def work(transaction: Transaction) -> list[Row]:
            begun.append(name)
            rows = transaction.run(name, **parameters)
            renew_corpus(transaction, corpus=self._services.corpus, run=self._run)
            return rows

        rows = self._services.database.write_as(name, work)
        with self._lock:
            self.repeated += len(begun) - 1
        return rows

    def each(self, tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Yield what tasks return, in their order. No more than twice as many as there are threads wait."""
        running: deque[Future[T]] = deque()
        for task in tasks:
            if len(running) >= 2 * self._number:
                yield running.popleft().result()
            running.append(self._pool.submit(task))
        while running:
            yield running.popleft().result()

    def run_apart(
        self, rows: Iterable[Row], write: Callable[[Sequence[Row]], None], *, ends: tuple[str, str], size: int
    ) -> None:
        """Write rows that tie two nodes each, named by the uids at `ends`, in batches of at most `size`.

        The nodes are in groups by their uids, and the rows in cells by the groups of both ends. A round has cells
        without a common group, and one round follows the other.
        """
        cells: dict[frozenset[int], list[Row]] = {}
        groups = 2 * self._number if self._number > 1 else 1
        for row in sorted(rows, key=lambda each: (each[ends[0]], each[ends[1]])):
            cells.setdefault(frozenset(_group(row[end], groups) for end in ends), []).append(row)

        def cell(pair: frozenset[int]) -> None:
            for some in batches(cells[pair], size=size):
                write(some)

        for pairs in rounds(groups):
            tasks = [lambda pair=pair: cell(pair) for pair in pairs if pair in cells]
            for _ in self.each(tasks):
                pass


def _group(uid: str, groups: int) -> int:
    return int(uid[-8:], 16) % groups


def rounds(groups: int) -> Iterator[list[frozenset[int]]]:
    """Yield rounds of pairs of groups, an even number of them or one: each pair once, and in a round no group twice."""
    yield [frozenset([group]) for group in range(groups)]
    others = list(range(1, groups))
    for _ in others:
        ring: list[Any] = [0, *others]
        yield [frozenset([ring[at], ring[-1 - at]]) for at in range(groups // 2)]
        others = [others[-1], *others[:-1]]
