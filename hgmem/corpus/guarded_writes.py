"""Write under a condition that each write checks in its own transaction."""

import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from hgmem.errors import ConflictError, HGMemError
from hgmem.graph.builds import mark_builds
from hgmem.graph.corpus import (
    create_corpus,
    delete_corpus_contents,
    delete_corpus_node,
    lease_corpus,
    renew_corpus,
    set_embedder,
)
from hgmem.graph.database import Database, Row, Transaction
from hgmem.graph.embeddings import lock_corpus
from hgmem.graph.leases import renewing
from hgmem.graph.values import Runner
from hgmem.services import Services

IMPORTING = "importing"

Finish: TypeAlias = Callable[[Runner, str], None]


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


def leased_writer(services: Services, run: str) -> GuardedWriter:
    """Return a writer that raises `ConflictError` once the run has lost its lease on the corpus."""
    corpus = services.corpus
    return GuardedWriter(database=services.database, check=lambda at: renew_corpus(at, corpus=corpus, run=run))


@contextmanager
def renewing_lease(services: Services, run: str) -> Iterator[None]:
    """Renew the run's lease on the corpus while the block runs."""
    database, corpus = services.database, services.corpus
    with renewing(database, lambda at: renew_corpus(at, corpus=corpus, run=run), every=services.settings.heartbeat):
        yield


@contextmanager
def importing(services: Services, *, embedder: tuple[str, int], finish: Finish) -> Iterator[GuardedWriter]:
    """Lease the corpus for the block, and yield a writer for it.

    `finish(database, run)` releases the lease. If the block fails, the corpus is deleted.
    """
    database, corpus, run = services.database, services.corpus, secrets.token_hex(8)
    timeout = services.settings.claim_timeout
    if not database.write(_lease, services, run, embedder):
        raise ConflictError(
            f"corpus {corpus!r} is being imported by another process: wait until it ends; if it "
            f"crashed, retry {timeout:g} s after its last heartbeat"
        )
    try:
        with renewing_lease(services, run):
            delete_corpus_contents(database, corpus=corpus)  # left by a killed import
            yield leased_writer(services, run)
            finish(database, run)
    except ConflictError:
        raise  # another run has the lease now
    except BaseException:
        with suppress(HGMemError):
            renew_corpus(database, corpus=corpus, run=run)  # raises if another run has the lease: delete nothing then
            delete_corpus_contents(database, corpus=corpus)
            delete_corpus_node(database, corpus=corpus)
        raise


def _lease(transaction: Transaction, services: Services, run: str, embedder: tuple[str, int]) -> bool:
    """Return whether this run has the lease now, and set the corpus's embedder.

    A killed import may have used another embedder.
    """
    corpus, timeout = services.corpus, services.settings.claim_timeout
    create_corpus(transaction, corpus=corpus, status=IMPORTING, embedder=embedder, settings={})
    if not lease_corpus(transaction, corpus=corpus, run=run, status=IMPORTING, timeout=timeout):
        return False
    set_embedder(transaction, corpus=corpus, run=run, embedder=embedder)
    return True


_LONGEST_PAUSE = 0.2  # seconds between two attempts


class OvertakenError(Exception):
    """Another writer has changed what was read."""


def attempts(most: int) -> Iterator[int]:
    """Yield the numbers of attempts from 0, with a random pause before each but the first."""
    for attempt in range(most):
        if attempt:
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.01 * 2**attempt)))  # noqa: S311
        yield attempt
