"""Trails: vectors that questions pull towards themselves, or lose (paper, equations 1 to 3), from their learnings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.builds.units import StoredRow
from hgmem.graph.database import Row
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import Runner
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import Penalty
from hgmem.systems.remindrag.statements import learnt_questions, list_trails, set_trails, touches_of

Vector: TypeAlias = NDArray[np.float32]
_AT_ONCE = 500  # trails that a check reads together
_ALL = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One learning of a trail: the question's unit vector, and whether the trail led to something of use."""

    question: Vector
    effective: bool
    penalty: Penalty


def delta(x: float) -> float:
    """Return δ(x) = (2/π)·cos(πx/2), how far a trail of length x moves (paper, section 3.3)."""
    return 2 / pi * cos(pi * x / 2)


LEARNT_ONCE = delta(0)
"""The length of a trail after one learning."""


def touched(trail: Vector, touch: Touch) -> Vector:
    """Return a trail's vector w after one learning of a question q̂ (paper, equation 1).

    Effective: w + δ(‖w‖)·q̂. Else only the component p = w·q̂ shrinks, if it is positive: by the share δ(p) with the
    penalty `shrink`, by the share max(δ(p), p) with `forget`, which also reduces p = 1, and not at all with `off`.
    """
    # Computed in double precision and stored as float32 after each learning, so that a replay gives the same bits.
    before, question = trail.astype(np.float64), touch.question.astype(np.float64)
    if touch.effective:
        return np.asarray(before + delta(length_of(trail)) * question, dtype=np.float32)
    along = float(before @ question)
    if along <= 0 or touch.penalty == "off":
        return trail
    share = abs(delta(along)) if touch.penalty == "shrink" else max(abs(delta(along)), along)
    return np.asarray(before - min(share, 1.0) * along * question, dtype=np.float32)


def replayed(touches: Iterable[Touch], *, dimensions: int) -> Vector:
    """Return the vector of a trail from all of its learnings in their order. Without any, it is zero."""
    trail: Vector = np.zeros(dimensions, dtype=np.float32)
    for touch in touches:
        trail = touched(trail, touch)
    return trail


def length_of(trail: Vector) -> float:
    """Return the length of a trail's vector."""
    return float(np.linalg.norm(trail.astype(np.float64)))


def relevance(alike: float, along: float, *, alpha: float) -> float:
    """Return R = α·(v_i·v_j) + (1 − α)·(q·w), from both products (paper, equation 2)."""
    return alpha * alike + (1 - alpha) * along


def least_cosine(alike: float, length: float, *, alpha: float, strong: float) -> float:
    """Return the cosine of question and trail above which a trail of this length is strong (equation 2 for R > λ)."""
    weight = (1 - alpha) * length
    return (strong - alpha * alike) / weight if weight else float("inf")


def renewed_vectors(services: Services, rows: Sequence[StoredRow]) -> Mapping[str, Vectors]:
    """Return the vectors of learnings, which are those of their questions, and of trails, replayed from these.

    How alike the ends of the trails are is written at once: it follows from their new vectors.
    """
    questions = {row.uid: str(row.properties["question"]) for row in rows if row.kind == "Learning"}
    vectors = services.embed(list(questions.values()), kind="query")
    made: dict[str, Vectors] = dict(zip(questions, vectors, strict=True))
    if trails := [row.uid for row in rows if row.kind == "Trail"]:
        stored = touches_of(services.database, corpus=services.corpus, uids=trails)
        texts = sorted({touch["question"] for row in stored for touch in row["touches"]})
        by_text = dict(zip(texts, services.embed(texts, kind="query"), strict=True))
        renewed = [_trail_row(row, by_text, dimensions=services.embedder.dimensions) for row in stored]
        set_trails(services.database, corpus=services.corpus, rows=renewed)
        made |= {row["uid"]: row["vector"] for row in renewed}
    return made


def replay_trails(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> list[str]:
    """Write what these trails remember of the learnings that are left. Returns the trails (uids) that have none."""
    stored = touches_of(database, corpus=corpus, uids=uids)
    left = [row for row in stored if row["touches"]]
    vectors = learnt_questions(database, corpus=corpus, uids=[row["uid"] for row in left])
    set_trails(database, corpus=corpus, rows=[_trail_row(row, vectors, dimensions=dimensions) for row in left])
    return [row["uid"] for row in stored if not row["touches"]]


def _trail_row(row: Row, vectors: Mapping[str, Vectors], *, dimensions: int) -> Row:
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
    return {"uid": row["uid"], "vector": trail, "length": length_of(trail), "alike": row["alike"] or 0.0}


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
        again = _trail_row(row, vectors, dimensions=len(row["vector"]))["vector"]
        if not np.array_equal(again, np.asarray(row["vector"], dtype=np.float32)):
            yield row["uid"]


INVARIANTS = (
    OwnInvariant(name="ends", meaning="a trail lacks an end", violated=without_ends),
    OwnInvariant(name="learnt", meaning="a trail is not what its learnings made of it", violated=other_than_learnt),
)
