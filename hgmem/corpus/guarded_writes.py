"""Write under a condition that each write checks in its own transaction, such as a lease, which is kept alive."""

import contextvars
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hgmem.errors import ConflictError, HGMemError
from hgmem.graph.builds import mark_builds
from hgmem.graph.corpus import lock_corpus, renew_corpus
from hgmem.graph.database import Database, Once, Row, Transaction
from hgmem.graph.values import Runner
from hgmem.services import Services

LONGEST_PAUSE = 0.2  # seconds between two attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedWriter:
    """A database whose writes first call `check`, which raises to prevent them."""

    database: Database
    check: Callable[[Runner], object]

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""
        return self.database.write_as(name, _guarded, self, name, parameters)


def _guarded(transaction: Transaction, writer: GuardedWriter, name: str, parameters: Row) -> list[Row]:
    writer.check(transaction)
    return transaction.run(name, **parameters)


def embedding(services: Services) -> GuardedWriter:
    """Return a writer for vectors that fails once the corpus has another embedder."""
    return GuardedWriter(database=services.database, check=lambda transaction: check_embedder(transaction, services))


def marking(services: Services, change: str) -> GuardedWriter:
    """Return a writer whose writes also say of the builds of the corpus that it has changed, and how."""
    return GuardedWriter(database=services.database, check=lambda at: _mark(at, services.corpus, change))


def _mark(transaction: Runner, corpus: str, change: str) -> None:
    lock_corpus(transaction, corpus=corpus)
    mark_builds(transaction, corpus=corpus, change=change)


def check_embedder(transaction: Runner, services: Services) -> None:
    """Lock the corpus for the transaction.

    Raises `ConflictError` if the corpus is not ready, or has another embedder.
    """
    row = lock_corpus(transaction, corpus=services.corpus)
    if row is None or row.status != "ready" or row.embedding_model != services.embedder.name:
        raise ConflictError(
            f"corpus {services.corpus!r} was re-embedded or deleted during the call: start again with its current "
            "embedder"
        )


@contextmanager
def renewing(database: Database, renew: Callable[[Runner], None], *, every: float) -> Iterator[None]:
    """Call `renew` every `every` seconds while the block runs, until the lease is lost.

    After another error it is called again at the next heartbeat, and not before: an attempt repeated after the block
    would hold a lease for a run that is over. The block's own writes check the lease and raise.
    """
    stopped, once = threading.Event(), Once(database)

    def beat() -> None:
        while not stopped.wait(every):
            try:
                renew(once)
            except ConflictError:
                return
            except HGMemError:
                continue

    thread = threading.Thread(target=contextvars.copy_context().run, args=(beat,), name="hgmem-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=1)  # a daemon thread: it may still be waiting for an unreachable server


@contextmanager
def leased_writer(services: Services, run: str) -> Iterator[GuardedWriter]:
    """Renew the run's lease on the corpus while the block runs.

    Yields a writer that raises `ConflictError` once the lease is lost.
    """

    def renew(transaction: Runner) -> None:
        renew_corpus(transaction, corpus=services.corpus, run=run)

    with renewing(services.database, renew, every=services.settings.heartbeat):
        yield GuardedWriter(database=services.database, check=renew)


class OvertakenError(Exception):
    """Another writer has changed what was read."""


def attempts(most: int) -> Iterator[int]:
    """Yield the numbers of attempts from 0, with a random pause before each but the first."""
    for attempt in range(most):
        if attempt:
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.01 * 2**attempt)))  # noqa: S311
        yield attempt
