"""Writing under a condition: each write checks, in its own transaction, that it may still be made."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from hgmem.claims import renewing
from hgmem.errors import ConflictError, HGMemError
from hgmem.graph.corpus import (
    claim_corpus,
    create_corpus,
    delete_corpus_contents,
    delete_corpus_node,
    renew_corpus,
    set_embedder,
)
from hgmem.graph.database import Database, Row, Transaction
from hgmem.graph.embeddings import lock_corpus
from hgmem.graph.values import Runner
from hgmem.services import Services

IMPORTING = "importing"

Finish: TypeAlias = Callable[[Runner, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The database, for writes; `check` raises where one must not be made, and then nothing of it is written."""

    database: Database
    check: Callable[[Runner], object]

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""
        return self.database.write_as(name, _checked, self, name, parameters)


def _checked(transaction: Transaction, writer: Checked, name: str, parameters: Row) -> list[Row]:
    writer.check(transaction)
    return transaction.run(name, **parameters)


def embedding(services: Services) -> Checked:
    """Return how vectors are written: into a corpus that is still the embedder's they come from."""
    return Checked(database=services.database, check=lambda transaction: check_embedder(transaction, services))


def check_embedder(transaction: Runner, services: Services) -> None:
    """Lock the corpus for the transaction; `ConflictError` where it is going, or another embedder has it now."""
    row = lock_corpus(transaction, corpus=services.corpus)
    if row is None or row.status != "ready" or row.embedding_model != services.embedder.name:
        raise ConflictError(
            f"corpus {services.corpus!r} was re-embedded or deleted meanwhile: start again, with its embedder"
        )


def held(services: Services, run: str) -> Checked:
    """Return how to write to a corpus that a run holds; a lost claim is a `ConflictError`."""
    corpus = services.corpus
    return Checked(database=services.database, check=lambda at: renew_corpus(at, corpus=corpus, run=run))


@contextmanager
def renewed(services: Services, run: str) -> Iterator[None]:
    """Keep the claim of a run on the corpus alive while the block runs."""
    database, corpus = services.database, services.corpus
    with renewing(lambda: renew_corpus(database, corpus=corpus, run=run), every=services.settings.heartbeat):
        yield


@contextmanager
def importing(services: Services, *, embedder: tuple[str, int], finish: Finish) -> Iterator[Checked]:
    """Claim the corpus for the block, and yield how to write to it; whatever ends it early leaves no corpus.

    `finish(database, run)` gives the claim back.
    """
    database, corpus, run = services.database, services.corpus, secrets.token_hex(8)
    timeout = services.settings.claim_timeout
    if not database.write(_claim, services, run, embedder):
        raise ConflictError(f"corpus {corpus!r} is being imported by another process: wait for it, or {timeout:g} s")
    try:
        with renewed(services, run):
            delete_corpus_contents(database, corpus=corpus)  # what a killed import left
            yield held(services, run)
            finish(database, run)
    except ConflictError:
        raise  # another run holds it now
    except BaseException:
        with suppress(HGMemError):
            renew_corpus(database, corpus=corpus, run=run)  # what another run holds now is not ours to delete
            delete_corpus_contents(database, corpus=corpus)
            delete_corpus_node(database, corpus=corpus)
        raise


def _claim(transaction: Transaction, services: Services, run: str, embedder: tuple[str, int]) -> bool:
    """Return whether this run holds the corpus now; an import that was killed may have had another embedder."""
    corpus, timeout = services.corpus, services.settings.claim_timeout
    create_corpus(transaction, corpus=corpus, status=IMPORTING, embedder=embedder, settings={})
    if not claim_corpus(transaction, corpus=corpus, run=run, status=IMPORTING, timeout=timeout):
        return False
    set_embedder(transaction, corpus=corpus, run=run, embedder=embedder)
    return True
