"""Typed wrappers for `cypher/supports.cypher`."""

from collections.abc import Mapping, Sequence
from typing import Any

from hgmem.graph.retrieval import Scope
from hgmem.graph.values import Runner, vector


def chunks_around_points(
    database: Runner, *, scope: Scope, points: Sequence[str], read: Sequence[str], k: int
) -> list[str]:
    """Return the uids of chunks read that the points' entities, or their neighbours, are mentioned in.

    A point gives k inner and k outer ones at most. Nearest to a point first.
    """
    rows = database.run(
        "chunks_around_points",
        corpus=scope.corpus,
        memory=scope.memory,
        points=list(points),
        read=list(read),
        k=k,
    )
    return [str(row["chunk"]) for row in rows if row["chunk"] is not None]


def nearest_supports(
    database: Runner, *, scope: Scope, supports: Mapping[str, Sequence[str]], query: Any
) -> dict[str, tuple[float, list[str]]]:
    """Return, for each point (uid), its similarity to a vector and its chunks that exist, nearest to the point first.

    `supports` are the chunks of each point.
    """
    rows = database.run(
        "nearest_supports",
        corpus=scope.corpus,
        memory=scope.memory,
        documents=scope.uids,
        points=[{"uid": uid, "chunks": list(chunks)} for uid, chunks in supports.items()],
        vector=vector(query),
    )
    return {
        row["point"]: (-1.0 if row["score"] is None else row["score"], [uid for uid in row["chunks"] if uid])
        for row in rows
        if row["point"] is not None
    }


def chunks_beside(
    database: Runner, *, corpus: str, chunks: Sequence[str], without: Sequence[str], nearest: tuple[Sequence[Any], int]
) -> list[str]:
    """Return the uids of chunks right before or after these, without some, the best first.

    `nearest` are the vectors and how many chunks there are at most. The best are near to one of the vectors, in a
    document that has many of `chunks`.
    """
    vectors, k = nearest
    rows = database.run(
        "chunks_beside",
        corpus=corpus,
        chunks=list(chunks),
        without=list(without),
        asked=[vector(one) for one in vectors],
        k=k,
    )
    return [str(row["chunk"]) for row in rows if row["chunk"] is not None]
