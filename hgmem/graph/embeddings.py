"""Typed wrappers for `cypher/embeddings.cypher`."""

from collections.abc import Sequence

from hgmem.graph.database import leased
from hgmem.graph.values import Runner, rows_with_vectors
from hgmem.models.embedding import Vectors


def leased_memories(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the uids of memories whose lease was renewed in the last `timeout` seconds."""
    return [row["uid"] for row in database.run("leased_memories", corpus=corpus, timeout=timeout)]


def leased_builds(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the systems whose build's lease was renewed in the last `timeout` seconds."""
    return [row["system"] for row in database.run("leased_builds", corpus=corpus, timeout=timeout)]


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


def put_point_vectors(database: Runner, *, corpus: str, uids: Sequence[str], vectors: Vectors) -> None:
    """Write the points' vectors."""
    database.run("put_point_vectors", corpus=corpus, rows=rows_with_vectors([{"uid": uid} for uid in uids], vectors))
