"""Re-embedding: all vectors of a corpus and its memories made again, by another embedder.

The former vectors are cleared first, and that this is done is written down: so a run that was killed is gone on with,
and no vector of one embedder is ever searched with another's. Meanwhile nobody reads the corpus or writes to it.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hgmem.corpus.filling import fill
from hgmem.corpus.fold import Report
from hgmem.corpus.holding import Checked, held, renewed
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.graph.corpus import claim_corpus
from hgmem.graph.database import Transaction
from hgmem.graph.embeddings import (
    LockedCorpus,
    begin_reembedding,
    clear_chunk_vectors,
    clear_entity_vectors,
    clear_point_vectors,
    clear_relation_vectors,
    held_memories,
    interrupt_memories,
    lock_corpus,
    mark_cleared,
    release_reembedding,
)
from hgmem.services import RE_EMBEDDING, Services, known_corpus, settled_corpus

CLEARED = 5_000  # vectors a transaction
CLEARING: tuple[Callable[..., int], ...] = (
    clear_chunk_vectors,
    clear_entity_vectors,
    clear_relation_vectors,
    clear_point_vectors,
)


def reembed(services: Services, *, report: Report = lambda _, __: None) -> int:
    """Return how many vectors were made, so that all of the corpus's are those of the services' embedder.

    A run that was cut short is gone on with; with another embedder than it had, all begins anew. `report` hears how
    many vectors are made, of how many. Raises `ConflictError` while a question is answered or another run holds it.
    """
    row = known_corpus(services)
    embedder = (services.embedder.name, services.embedder.dimensions)  # one that can't be used is refused here
    if row.status != RE_EMBEDDING:
        settled_corpus(services)
        if (row.embedding_model, row.dimensions) == embedder:
            return 0
    run = secrets.token_hex(8)
    cleared = services.database.write(_claim, services, run)
    with _holding(services, run) as writer:
        if not cleared:
            _clear(services, writer)
            mark_cleared(services.database, corpus=services.corpus, run=run)
        return fill(services, writer, report=report)


def _claim(transaction: Transaction, services: Services, run: str) -> bool:
    """Return whether the former vectors are cleared already; from here on the corpus is held by this run."""
    corpus, timeout = services.corpus, services.settings.claim_timeout
    embedder = (services.embedder.name, services.embedder.dimensions)
    row = lock_corpus(transaction, corpus=corpus)
    if row is None or row.status not in ("ready", RE_EMBEDDING):
        raise UsageError(f"corpus {corpus!r} is {row.status if row else 'gone'}: wait until that is done")
    if memories := held_memories(transaction, corpus=corpus, timeout=timeout):
        raise ConflictError(
            f"a question is being answered with corpus {corpus!r} (memory {memories[0]!r}): wait until it is; if that "
            f"died, {timeout:g} s"
        )
    if not claim_corpus(transaction, corpus=corpus, run=run, status=RE_EMBEDDING, timeout=timeout):
        raise ConflictError(f"corpus {corpus!r} is being re-embedded by another process: wait for it, or {timeout:g} s")
    interrupt_memories(transaction, corpus=corpus)
    if _goes_on(row, embedder):
        return bool(row.cleared)
    begin_reembedding(transaction, corpus=corpus, run=run, embedder=embedder)
    return False


def _goes_on(row: LockedCorpus, embedder: tuple[str, int]) -> bool:
    return row.status == RE_EMBEDDING and (row.embedding_model, row.dimensions) == embedder


@contextmanager
def _holding(services: Services, run: str) -> Iterator[Checked]:
    """Yield how to write while this run holds the corpus; ended early, it can be gone on with at once."""
    database, corpus = services.database, services.corpus
    try:
        with renewed(services, run):
            yield held(services, run)
    except BaseException:
        with suppress(HGMemError):
            release_reembedding(database, corpus=corpus, run=run, status=RE_EMBEDDING)
        raise
    release_reembedding(database, corpus=corpus, run=run, status="ready")


def _clear(services: Services, writer: Checked) -> None:
    for clear in CLEARING:
        while clear(writer, corpus=services.corpus, most=CLEARED):
            pass
