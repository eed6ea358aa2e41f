"""Exact memory: how strong trails are by the questions that touched them, however many (docs/decisions/0037)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.values import Runner, vector

NEAR = 0.7  # cosine of two questions from which one says something of the other
_MOST = 200  # learnings that are looked at, the nearest: so the touches of one trail are bounded too
_KEPT = 0.55  # of a useful touch after a useless one of the same question
_NOTHING = 0.5  # cosine at which a useless touch takes nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """What a learning said of a trail: how near its question is (a cosine), and whether the trail was of use.

    `own` is whether it is the asking owner's, not everybody's. `number` is its place among the learnings of its owner.
    """

    near: float
    effective: bool
    own: bool
    number: int


def nearest_use(touches: Iterable[Touch]) -> float:
    """Return the cosine of the nearest touch of use. It loses a share for each useless one since, the nearer the more.

    An owner's useless touches count against everybody's useful ones, whenever these were made, and not the reverse.
    """
    found = list(touches)
    useless = [touch for touch in found if not touch.effective]

    def left(touch: Touch) -> float:
        since = (
            each for each in useless if (each.own, each.number) > (touch.own, touch.number) and each.own >= touch.own
        )
        worn = sum((max(0.0, each.near - _NOTHING) / (1 - _NOTHING)) ** 2 for each in since)
        return float(touch.near * _KEPT**worn)

    return max((left(touch) for touch in found if touch.effective), default=0.0)


def trail_scores(database: Runner, *, corpus: str, owners: Sequence[str], query: Any, alpha: float) -> dict[str, float]:
    """Return by trail (uid) its relevance R for a question's unit vector, of trails that near questions touched.

    The last one of the `owners` is who asks. An owner's trail and everybody's between the same places have one score.
    """
    rows = database.run(
        "near_touches", corpus=corpus, owners=list(owners), vector=vector(query), least=NEAR, most=_MOST
    )
    trails: dict[str, dict[str, float]] = {}
    touches: dict[str, list[Touch]] = {}
    for row in rows:
        between = row["key"].removesuffix(row["owner"])
        trails.setdefault(between, {})[row["uid"]] = row["alike"]
        own = bool(row["owner"]) and row["owner"] == owners[-1]
        touch = Touch(near=row["near"], effective=row["effective"], own=own, number=row["number"])
        touches.setdefault(between, []).append(touch)
    return {
        uid: alpha * alike + (1 - alpha) * nearest_use(touches[between])
        for between, found in trails.items()
        for uid, alike in found.items()
    }
