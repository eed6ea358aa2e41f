"""Recompute all vectors of a corpus and its memories with another embedder.

The old vectors are cleared first, and the corpus records that. A killed run can therefore resume, and vectors of two
embedders are never searched together. Meanwhile, no other run can read the corpus or write to it.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from hgmem.corpus import paging
from hgmem.corpus.aggregation import ENTITY, RELATION, Filling
from hgmem.corpus.guarded_writes import GuardedWriter, leased_writer
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.extraction.contributions import own_relation_text
from hgmem.graph.builds import mark_builds
from hgmem.graph.built import put_built_vectors
from hgmem.graph.corpus import lease_corpus, leased_builds, leased_memories, lock_corpus, write_leased
from hgmem.graph.database import Row, Transaction
from hgmem.graph.values import Runner, vector_writer
from hgmem.services import RE_EMBEDDING, Services, check_schema, known_corpus, settled_corpus
from hgmem.values.reports import CountReport

BATCH = 128  # texts embedded and stored together: at most this much work is repeated after a kill


def fill(services: Services, writer: Runner, *, report: CountReport = lambda _, __: None) -> int:
    """Embed what lacks a vector, and return how many vectors were made.

    `writer` writes each batch in its own transaction. `report` receives the number of vectors made, and the total.
    """
    database, corpus = services.database, services.corpus
    done, total = 0, database.run("count_unembedded", corpus=corpus)[0]["missing"]
    report(done, total)
    for listed, filling in FILLINGS:
        if done >= total:
            break
        for uids in paging.pages(database, listed, corpus=corpus, size=BATCH):
            if made := filling.fill(services, writer, uids):
                report(done := done + made, total)
    return done


def _text(row: Row) -> str:
    return str(row["text"])


FILLINGS: Sequence[tuple[paging.Listed, Filling]] = (
    (paging.CHUNKS, Filling(missing="missing_chunk_vectors", text=_text, put=vector_writer("put_chunk_vectors"))),
    (paging.ENTITIES, ENTITY.filling),
    (paging.RELATIONS, RELATION.filling),
    (paging.PROVISIONALS, ENTITY.filling),
    (
        paging.OWN_RELATIONS,
        Filling(
            missing="missing_own_relation_vectors",
            text=lambda row: own_relation_text((row["source"], row["target"]), row["description"]),
            put=RELATION.filling.put,
        ),
    ),
    (paging.POINTS, Filling(missing="missing_point_vectors", text=_text, put=vector_writer("put_point_vectors"))),
    (paging.BUILT, Filling(missing="missing_built_vectors", text=_text, put=put_built_vectors)),
)


CLEARED = 5_000  # vectors per transaction
CLEARING = (
    "clear_chunk_vectors",
    "clear_entity_vectors",
    "clear_relation_vectors",
    "clear_point_vectors",
    "clear_built_vectors",
)


def reembed(
    services: Services,
    *,
    finish: Callable[[Services, GuardedWriter], None] = lambda _, __: None,
    report: CountReport = lambda _, __: None,
) -> int:
    """Recompute all vectors of texts with the services' embedder, and return how many were made.

    `finish` recomputes the others from these. Resumes an interrupted run, unless that used another embedder. `report`
    receives the number of vectors made, and the total. Raises `ConflictError` while a question is being answered, a
    build is being made, or another run has the lease.
    """
    row = known_corpus(services)
    check_schema(row)
    embedder = (services.embedder.name, services.embedder.dimensions)  # raises if the embedder is unusable
    if row.status != RE_EMBEDDING:
        settled_corpus(services)
        if (row.embedding_model, row.dimensions) == embedder:
            return 0
    run = secrets.token_hex(8)
    cleared = services.database.write(_lease, services, run)
    with _leased(services, run) as writer:
        if not cleared:
            _clear(services, writer)
            write_leased(services.database, "mark_cleared", corpus=services.corpus, run=run)
        made = fill(services, writer, report=report)
        finish(services, writer)
        return made


def _lease(transaction: Transaction, services: Services, run: str) -> bool:
    """Lease the corpus for this run, and return whether the old vectors are cleared already."""
    corpus, timeout = services.corpus, services.settings.claim_timeout
    embedder = (services.embedder.name, services.embedder.dimensions)
    row = lock_corpus(transaction, corpus=corpus)
    if row is None or row.status not in ("ready", RE_EMBEDDING):
        raise UsageError(
            f"corpus {corpus!r} is not ready (status {row.status if row else 'deleted'}): wait until it ends"
        )
    if memories := leased_memories(transaction, corpus=corpus, timeout=timeout):
        raise ConflictError(
            f"corpus {corpus!r} is in use by a question (memory {memories[0]!r}): wait until it ends; if that run "
            f"crashed, retry {timeout:g} s after its last heartbeat"
        )
    if builds := leased_builds(transaction, corpus=corpus, timeout=timeout):
        raise ConflictError(
            f"the build {builds[0]!r} in corpus {corpus!r} is being made: wait until it ends; if that run "
            f"crashed, retry {timeout:g} s after its last heartbeat"
        )
    if not lease_corpus(transaction, corpus=corpus, run=run, status=RE_EMBEDDING, timeout=timeout):
        raise ConflictError(
            f"corpus {corpus!r} is being re-embedded by another process: wait until it ends; if it "
            f"crashed, retry {timeout:g} s after its last heartbeat"
        )
    transaction.run("interrupt_memories", corpus=corpus)
    if row.status == RE_EMBEDDING and (row.embedding_model, row.dimensions) == embedder:  # resumed
        return bool(row.cleared)
    model, dimensions = embedder
    write_leased(transaction, "begin_reembedding", corpus=corpus, run=run, embedding_model=model, dimensions=dimensions)
    mark_builds(transaction, corpus=corpus, change="the corpus has another embedder")
    return False


@contextmanager
def _leased(services: Services, run: str) -> Iterator[GuardedWriter]:
    """Yield a writer under this run's lease, and release the lease at the end.

    If the block fails, another run can resume at once.
    """
    database, corpus = services.database, services.corpus

    def release(status: str) -> None:
        write_leased(database, "release_reembedding", corpus=corpus, run=run, status=status)

    try:
        with leased_writer(services, run) as writer:
            yield writer
    except BaseException:
        with suppress(HGMemError):
            release(RE_EMBEDDING)
        raise
    release("ready")


def _clear(services: Services, writer: GuardedWriter) -> None:
    for name in CLEARING:
        while writer.run(name, corpus=services.corpus, most=CLEARED)[0]["cleared"]:
            pass
