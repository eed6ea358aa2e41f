"""What trails remember, made again: by other vectors of the same questions, or without some of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hgmem.builds.units import StoredRow
from hgmem.graph.database import Row
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import Runner
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.remindrag.statements import learnt_questions, list_trails, set_trails, touches_of
from hgmem.systems.remindrag.trail_vectors import Touch, replayed


def renewed_vectors(services: Services, rows: Sequence[StoredRow]) -> Mapping[str, Vectors]:
    """Return the vectors of learnings, which are those of their questions, and of trails, replayed from these.

    How alike the ends of the trails are is written at once: it follows from their new vectors.
    """
    questions = {row.uid: str(row.properties["question"]) for row in rows if row.kind == "Learning"}
    made: dict[str, Vectors] = dict(zip(questions, _embedded(services, list(questions.values())), strict=True))
    trails = [row.uid for row in rows if row.kind == "Trail"]
    if trails:
        found = touches_of(services.database, corpus=services.corpus, uids=trails)
        texts = sorted({touch["question"] for row in found for touch in row["touches"]})
        vectors = dict(zip(texts, _embedded(services, texts), strict=True))
        renewed = [trail_row(row, vectors, dimensions=services.embedder.dimensions) for row in found]
        set_trails(services.database, corpus=services.corpus, rows=renewed)
        made |= {row["uid"]: row["vector"] for row in renewed}
    return made


def replay_trails(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> list[str]:
    """Write what these trails remember of the learnings that are left. Returns the trails (uids) that have none."""
    found = touches_of(database, corpus=corpus, uids=uids)
    held = [row for row in found if row["touches"]]
    vectors = learnt_questions(database, corpus=corpus, uids=[row["uid"] for row in held])
    set_trails(database, corpus=corpus, rows=[trail_row(row, vectors, dimensions=dimensions) for row in held])
    return [row["uid"] for row in found if not row["touches"]]


def trail_row(row: Row, vectors: Mapping[str, Vectors], *, dimensions: int) -> Row:
    """Return a trail as it follows from its learnings in their order, with the vectors of their questions."""
    touches = [
        Touch(
            question=np.asarray(vectors[touch["question"]], dtype=np.float32),
            effective=touch["effective"],
            penalty=touch["penalty"],
        )
        for touch in row["touches"]
    ]
    trail = replayed(touches, dimensions=dimensions)
    length = float(np.linalg.norm(trail.astype(np.float64)))
    return {"uid": row["uid"], "vector": trail, "length": length, "alike": row["alike"] or 0.0}


def _embedded(services: Services, texts: Sequence[str]) -> Vectors:
    return services.embed(texts, kind="query")


_AT_ONCE = 500
_ALL = 10_000_000


def _trails(database: Runner, corpus: str) -> Iterator[tuple[Row, str]]:
    """Yield each trail as its learnings see it, with its kind of tie."""
    ties = {row["uid"]: row["tie"] for row in list_trails(database, corpus=corpus, owners=None, query=None, k=_ALL)}
    uids = sorted(ties)
    for start in range(0, len(uids), _AT_ONCE):
        for row in touches_of(database, corpus=corpus, uids=uids[start : start + _AT_ONCE]):
            yield row, ties[row["uid"]]


def without_ends(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) that do not have the ends of their tie."""
    return (row["uid"] for row, tie in _trails(database, corpus) if row["ends"] != (1 if tie == "PASSAGE" else 2))


def other_than_learnt(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) whose vector is not that of their learnings in order, or that have none."""
    vectors: dict[str, Any] = {}
    for row, _ in _trails(database, corpus):
        if not row["touches"] or row["vector"] is None:
            yield row["uid"]
            continue
        if any(touch["question"] not in vectors for touch in row["touches"]):
            vectors |= learnt_questions(database, corpus=corpus, uids=[row["uid"]])
        again = trail_row(row, vectors, dimensions=len(row["vector"]))["vector"]
        if not np.array_equal(again, np.asarray(row["vector"], dtype=np.float32)):
            yield row["uid"]


INVARIANTS = (
    OwnInvariant(name="ends", meaning="a trail lacks an end", violated=without_ends),
    OwnInvariant(name="learnt", meaning="a trail is not what its learnings made of it", violated=other_than_learnt),
)
