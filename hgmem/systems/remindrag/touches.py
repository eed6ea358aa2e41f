"""Which trails are strong for a question: by the questions that touched them (docs/decisions/0037), or by vectors."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.values import Runner, vector
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.walk_record import SYSTEM
from hgmem.text.identity import built_uid

NEAR = 0.7  # cosine of two questions from which one says something of the other
MOST = 200  # learnings that are looked at, the nearest: so the touches of one trail are bounded too
_TRAILS = 500  # that are looked at by their vectors, and that are followed
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
    for touch in sorted(touches, key=lambda each: (each.own, each.number), reverse=True):
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

    All between the same two places have one score, whoever's they are and whatever names the places had.
    """
    rows = database.run("near_touches", corpus=corpus, owners=list(owners), vector=vector(query), least=NEAR, most=MOST)
    touches: dict[tuple[str, ...], list[Touch]] = {}
    for row in rows:
        own = bool(row["owner"]) and row["owner"] == owners[-1]
        touches.setdefault(tuple(row["ends"]), []).extend(
            Touch(near=near, effective=effective, own=own, number=number) for near, effective, number in row["touches"]
        )
    used = {ends: nearest_use(found) for ends, found in touches.items()}
    return [_trail(row, relevance(row["alike"], used[tuple(row["ends"])], alpha=config.alpha)) for row in rows]


def _by_vector(
    database: Runner, *, corpus: str, owners: Sequence[str], query: Any, config: ReMindRAGConfig
) -> list[StrongTrail]:
    """Return the trails that point along the question. The asking owner's may speak against everybody's."""
    given, owner = vector(query), owners[-1]
    least = (config.strong - config.alpha) / (1 - config.alpha) if config.alpha < 1 else -2.0  # of q·w, as v_i·v_j ≤ 1
    rows = database.run("near_trails", corpus=corpus, owners=list(owners), vector=given, least=least, most=_TRAILS)
    own = [built_uid(corpus, SYSTEM, kind="Trail", key=row["key"] + owner) for row in rows if not row["owner"]]
    found = database.run("trails_against", corpus=corpus, uids=own, vector=given) if owner and own else ()
    against = {row["key"].removesuffix(owner): row["along"] for row in found}
    scored = []
    for row in rows:
        between = row["key"].removesuffix(row["owner"])
        along = row["along"] + (0.0 if row["owner"] else against.get(between, 0.0))
        scored.append(_trail(row, relevance(row["alike"], along, alpha=config.alpha)))
    return scored


def _trail(row: Row, score: float) -> StrongTrail:
    ends = tuple(row["ends"])
    return StrongTrail(uid=row["uid"], ends=ends, tie=row["tie"], score=score, chunks=row["chunks"] or "")
