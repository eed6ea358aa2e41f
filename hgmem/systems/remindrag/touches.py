"""Which trails are strong for a question: by the questions that touched them (docs/decisions/0037), or by vectors."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.values import Runner, vector
from hgmem.systems.remindrag.recipes import ReMindRAGConfig

NEAR = 0.7  # cosine of two questions from which one says something of the other
MOST = 200  # learnings of each owner that are looked at, the nearest, and as many of wrong answers
_TRAILS = 500  # of each owner that are looked at by their vectors; and of all, that are followed
_SOME = 1e-6  # of a product with the question that is not zero
_KEPT = 0.55  # of a useful touch after a useless one of the same question
_FOUND_AGAIN = 0.35  # of what a learnt answer cites, from which a question is taken to need the same evidence
_AT_LEAST = 2  # chunks of that
_GIVEN_UP = 2  # answers that misled, to the question or from its evidence, after which it is not known again
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
    worn = best = 0.0
    for touch in sorted(touches, key=lambda each: (each.own, each.number, each.effective), reverse=True):
        if touch.effective:
            best = max(best, touch.near * _KEPT**worn)
        else:
            worn += (max(0.0, touch.near - _NOTHING) / (1 - _NOTHING)) ** 2
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongTrail:
    """A trail that is strong for a question: its relevance R, and the chunks kept of it.

    `ends` are the nodes (uids) that it ties, an anchor or two, of an entity in a class the class's.
    """

    uid: str
    ends: tuple[str, ...]
    tie: str
    score: float
    chunks: str


def strong_trails(
    database: Runner, *, corpus: str, owners: Sequence[str], query: Any, config: ReMindRAGConfig
) -> tuple[StrongTrail, ...]:
    """Return the trails with R > λ for a question's unit vector, the strongest first, at most `_TRAILS`.

    The last one of the `owners` is who asks. Without any, no trail is strong.
    """
    if not owners:
        return ()
    scored = _by_touches if config.recall == "touches" else _by_vector
    rows = scored(database, corpus=corpus, owners=owners, query=query, config=config)
    found = [one for one in rows if one.score > config.strong]
    return tuple(sorted(found, key=lambda one: (-one.score, one.uid))[:_TRAILS])


def near_learnings(database: Runner, *, corpus: str, owners: Sequence[str], query: Any) -> list[Row]:
    """Return the learnings of the nearest questions: memory, owner, question, number, what was cited (chunks by uid).

    `wrong` are those of an answer that misled.
    """
    return database.run("near_learnings", corpus=corpus, owners=list(owners), vector=vector(query), most=MOST)


def standing(learnings: Iterable[Row], *, owner: str) -> list[Row]:
    """Return the learnings of answers that did not mislead.

    One is given up whose answer misled, or after two later answers that misled, to the same question or from the same
    evidence. What misled an owner also counts against everybody's learnings, whenever they were made.
    """
    rows = list(learnings)
    misled = [row for row in rows if row["wrong"]]
    return [
        row
        for row in rows
        if not row["wrong"] and not _given_up(row, [one for one in misled if _counts(one, row, owner=owner)])
    ]


def cited_again(learnings: Iterable[Row], found: Collection[str]) -> list[Sequence[str]]:
    """Return what learnt answers cite (chunks by uid) of which enough was found again, most of it first.

    So a question is known again that is asked in other words.
    """
    shares = [(_share(row, found), row["cited"]) for row in learnings]
    return [cited for share, cited in sorted(shares, key=lambda pair: -pair[0]) if share]


def _share(row: Row, chunks: Collection[str]) -> float:
    """Return which share of what a learnt answer cites is among these chunks (uids), 0 where that is not enough."""
    again = len({*row["cited"]}.intersection(chunks))
    share = again / len(row["cited"]) if again >= _AT_LEAST else 0.0
    return share if share >= _FOUND_AGAIN else 0.0


def _counts(misled: Row, row: Row, *, owner: str) -> bool:
    """Whether an answer that misled speaks against a learning: numbers are an owner's own."""
    if misled["owner"] == row["owner"]:
        return int(misled["number"]) > int(row["number"])
    return bool(misled["owner"] == owner)


def _given_up(row: Row, misled: Sequence[Row]) -> bool:
    alike = [one["question"] == row["question"] or _share(row, one["cited"]) > 0 for one in misled]
    return sum(alike) >= _GIVEN_UP or any(one["memory"] == row["memory"] for one in misled)


def relevance(alike: float, along: float, *, alpha: float) -> float:
    """Return R = α·(v_i·v_j) + (1 − α)·(q·w), from both products (paper, section 3.2.2)."""
    return alpha * alike + (1 - alpha) * along


def _by_touches(
    database: Runner, *, corpus: str, owners: Sequence[str], query: Any, config: ReMindRAGConfig
) -> list[StrongTrail]:
    """Return the trails that near questions touched.

    All between the same two places have been of the same use, whoever's they are and whatever names the places had.
    """
    rows = database.run("near_touches", corpus=corpus, owners=list(owners), vector=vector(query), least=NEAR, most=MOST)
    touches: dict[tuple[str, ...], set[Touch]] = {}
    for row in rows:
        own = bool(row["owner"]) and row["owner"] == owners[-1]
        touches.setdefault(tuple(row["ends"]), set()).update(
            Touch(near=near, effective=effective, own=own, number=number) for near, effective, number in row["touches"]
        )
    used = {ends: nearest_use(found) for ends, found in touches.items()}
    return [_trail(row, used, alpha=config.alpha) for row in rows]


def _by_vector(
    database: Runner, *, corpus: str, owners: Sequence[str], query: Any, config: ReMindRAGConfig
) -> list[StrongTrail]:
    """Return the trails that point along the question. The asking owner's may speak against everybody's.

    All between the same two places point along it alike, as in `_by_touches`.
    """
    least = (config.strong - config.alpha) / (1 - config.alpha) if config.alpha < 1 else -2.0  # of q·w, as v_i·v_j ≤ 1

    def near(owners: Sequence[str], query: Any, least: float) -> list[Row]:
        return database.run(
            "near_trails", corpus=corpus, owners=list(owners), vector=vector(query), least=least, most=_TRAILS
        )

    rows, owner = near(owners, query, least), owners[-1]
    against = _most((row, row["along"]) for row in (near([owner], -query, _SOME) if owner else ()))
    along = _most((row, row["along"] - (0 if row["owner"] else against.get(tuple(row["ends"]), 0))) for row in rows)
    return [_trail(row, along, alpha=config.alpha) for row in rows]


def _most(found: Iterable[tuple[Row, float]]) -> dict[tuple[str, ...], float]:
    """Return the highest number by the ends of its row."""
    most: dict[tuple[str, ...], float] = {}
    for row, number in found:
        ends = tuple(row["ends"])
        most[ends] = max(number, most.get(ends, number))
    return most


def _trail(row: Row, along: Mapping[tuple[str, ...], float], *, alpha: float) -> StrongTrail:
    """Return a row's trail. `along` is its product with the question, or what stands for it, by its ends."""
    ends = tuple(row["ends"])
    score = relevance(row["alike"], along[ends], alpha=alpha)
    return StrongTrail(uid=row["uid"], ends=ends, tie=row["tie"], score=score, chunks=row["chunks"] or "")
