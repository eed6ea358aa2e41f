"""Typed twins of `cypher/embeddings.cypher`."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.embed import Vectors
from hgmem.graph.database import Row, claimed
from hgmem.graph.values import Runner, rows_with_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedCorpus:
    """A corpus that a transaction holds; `cleared` is there while it is re-embedded, once no former vector is left."""

    corpus: str
    status: str
    embedding_model: str
    dimensions: int
    imported: str | None
    cleared: bool | None


def lock_corpus(database: Runner, *, corpus: str) -> LockedCorpus | None:
    """Return the corpus, which no other transaction writes to until this one ends; None where there is none."""
    rows = database.run("lock_corpus", corpus=corpus)
    return LockedCorpus(**rows[0]) if rows else None


def held_memories(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the memories (uids) that runs hold which were heard of in the last `timeout` seconds."""
    return [row["uid"] for row in database.run("held_memories", corpus=corpus, timeout=timeout)]


def interrupt_memories(database: Runner, *, corpus: str) -> None:
    """Take the memories from the runs that hold them."""
    database.run("interrupt_memories", corpus=corpus)


def begin_reembedding(database: Runner, *, corpus: str, run: str, embedder: tuple[str, int]) -> None:
    """Write which embedder (name and dimensions) the vectors will be from, and that the former ones are still there."""
    model, dimensions = embedder
    rows = database.run("begin_reembedding", corpus=corpus, run=run, embedding_model=model, dimensions=dimensions)
    claimed(rows, what=f"corpus {corpus!r}")


def mark_cleared(database: Runner, *, corpus: str, run: str) -> None:
    """Write that no vector of the former embedder is left."""
    claimed(database.run("mark_cleared", corpus=corpus, run=run), what=f"corpus {corpus!r}")


def release_reembedding(database: Runner, *, corpus: str, run: str, status: str) -> None:
    """Give the claim back, leaving the corpus with `status`."""
    claimed(database.run("release_reembedding", corpus=corpus, run=run, status=status), what=f"corpus {corpus!r}")


def clear_chunk_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Return how many chunks lost their vectors, at most so many at once."""
    return int(database.run("clear_chunk_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_entity_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Return how many entities, provisional ones too lost their vectors, at most so many at once."""
    return int(database.run("clear_entity_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_relation_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Return how many relations, those of memories too lost their vectors, at most so many at once."""
    return int(database.run("clear_relation_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_point_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Return how many memory points lost their vectors, at most so many at once."""
    return int(database.run("clear_point_vectors", corpus=corpus, most=most)[0]["cleared"])


def count_unembedded(database: Runner, *, corpus: str) -> int:
    """Return how many things of the corpus and its memories lack a vector that they should have."""
    return int(database.run("count_unembedded", corpus=corpus)[0]["missing"])


def missing_chunk_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid and text of those of the chunks that are extracted and lack a vector."""
    return database.run("missing_chunk_vectors", corpus=corpus, uids=list(uids))


def missing_own_relation_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid, names of the ends, description and keywords of those of the relations that lack a vector."""
    return database.run("missing_own_relation_vectors", corpus=corpus, uids=list(uids))


def missing_point_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid and text of those of the points that lack a vector."""
    return database.run("missing_point_vectors", corpus=corpus, uids=list(uids))


def put_point_vectors(database: Runner, *, corpus: str, uids: Sequence[str], vectors: Vectors) -> None:
    """Write the points' vectors."""
    database.run("put_point_vectors", corpus=corpus, rows=rows_with_vectors([{"uid": uid} for uid in uids], vectors))
