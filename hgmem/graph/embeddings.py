"""Typed wrappers for `cypher/embeddings.cypher`."""

from collections.abc import Sequence

from hgmem.graph.database import Row, leased
from hgmem.graph.values import Runner, rows_with_vectors
from hgmem.models.embedding import Vectors


def leased_memories(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the uids of memories whose lease was renewed in the last `timeout` seconds."""
    return [row["uid"] for row in database.run("leased_memories", corpus=corpus, timeout=timeout)]


def leased_builds(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the systems whose build's lease was renewed in the last `timeout` seconds."""
    return [row["system"] for row in database.run("leased_builds", corpus=corpus, timeout=timeout)]


def interrupt_memories(database: Runner, *, corpus: str) -> None:
    """Revoke all leases on memories of the corpus."""
    database.run("interrupt_memories", corpus=corpus)


def begin_reembedding(database: Runner, *, corpus: str, run: str, embedder: tuple[str, int]) -> None:
    """Record the new embedder (name and dimensions), with the old vectors still to be cleared."""
    model, dimensions = embedder
    rows = database.run("begin_reembedding", corpus=corpus, run=run, embedding_model=model, dimensions=dimensions)
    leased(rows, what=f"corpus {corpus!r}")


def mark_cleared(database: Runner, *, corpus: str, run: str) -> None:
    """Record that no vector of the old embedder is left."""
    leased(database.run("mark_cleared", corpus=corpus, run=run), what=f"corpus {corpus!r}")


def release_reembedding(database: Runner, *, corpus: str, run: str, status: str) -> None:
    """Release the lease, and set the corpus's status."""
    leased(database.run("release_reembedding", corpus=corpus, run=run, status=status), what=f"corpus {corpus!r}")


def clear_chunk_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Clear the vectors of at most `most` chunks, and return how many."""
    return int(database.run("clear_chunk_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_entity_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Clear the vectors of at most `most` entities, including provisional ones, and return how many."""
    return int(database.run("clear_entity_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_relation_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Clear the vectors of at most `most` relations, including those of memories, and return how many."""
    return int(database.run("clear_relation_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_point_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Clear the vectors of at most `most` memory points, and return how many."""
    return int(database.run("clear_point_vectors", corpus=corpus, most=most)[0]["cleared"])


def clear_built_vectors(database: Runner, *, corpus: str, most: int) -> int:
    """Clear the indexed vectors of at most `most` built rows, and return how many."""
    return int(database.run("clear_built_vectors", corpus=corpus, most=most)[0]["cleared"])


def count_unembedded(database: Runner, *, corpus: str) -> int:
    """Return how many vectors the corpus and its memories lack."""
    return int(database.run("count_unembedded", corpus=corpus)[0]["missing"])


def missing_chunk_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid and text of those of the chunks that are extracted and lack a vector."""
    return database.run("missing_chunk_vectors", corpus=corpus, uids=list(uids))


def missing_own_relation_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid, end names, description and keywords of those of the relations that lack a vector."""
    return database.run("missing_own_relation_vectors", corpus=corpus, uids=list(uids))


def missing_point_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid and text of those of the points that lack a vector."""
    return database.run("missing_point_vectors", corpus=corpus, uids=list(uids))


def missing_built_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return uid and text of those of the built rows that lack a vector, and whether they keep an own one beside."""
    return database.run("missing_built_vectors", corpus=corpus, uids=list(uids))


def plain_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return all properties of those of the built rows that have a vector outside the index."""
    return [row["row"] for row in database.run("plain_vectors", corpus=corpus, uids=list(uids))]


def put_point_vectors(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Vectors) -> None:
    """Write the vectors of points, rows with a uid."""
    plain = rows_with_vectors([{"uid": row["uid"]} for row in rows], vectors)
    database.run("put_point_vectors", corpus=corpus, rows=plain)
