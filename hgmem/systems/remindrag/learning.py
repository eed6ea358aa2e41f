"""Learning: trails that led to use are pulled towards the question, the others lose it (paper, section 3.3)."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from hgmem.corpus.guarded_writes import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.database import Row, Transaction
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import Penalty
from hgmem.systems.remindrag.statements import (
    SYSTEM,
    draw_number,
    learning_of,
    lock_scope,
    passage_chunks,
    put_learning,
    put_trails,
    remove_learnings,
    remove_trails,
    trails_to_touch,
)
from hgmem.systems.remindrag.tasks import JudgeUseful
from hgmem.systems.remindrag.trail_vectors import Touch, Vector, touched
from hgmem.systems.remindrag.upkeep import replay_trails
from hgmem.systems.remindrag.walker import Recorded
from hgmem.text.identity import built_uid

_QUOTED = 5  # chunks that are kept of what was read at a node
_MARKERS = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer of a walk's question: its memory and the memory's owner, its text, and the chunks (uids) it cites."""

    memory: str
    owner: str
    text: str
    cited: AbstractSet[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A learning: its uid and number, its question, how many trails it touched, and how many of them led to use."""

    learning: str
    number: int
    question: str
    trails: int
    effective: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lesson:
    """What is learnt of one walk: each trail by uid with its ends, and whether it led to use, and where use began."""

    uid: str
    key: str
    question: str
    vector: Vector
    penalty: Penalty
    touches: Mapping[str, Row]
    starts: Sequence[str]
    summaries: Mapping[str, str]


def learn_walks(services: Services, answered: Answered, walks: Sequence[Recorded], *, penalty: Penalty) -> list[Learnt]:
    """Learn the walks of one question, all in one transaction, and return what was learnt.

    Raises `UsageError` where that has been done before.
    """
    keys = [answered.memory if not number else f"{answered.memory}/{number}" for number in range(len(walks))]
    uids = [built_uid(services.corpus, SYSTEM, kind="Learning", key=key) for key in keys]
    if any(learning_of(services.database, corpus=services.corpus, uid=uid) for uid in uids):
        raise _twice(services.corpus, answered.memory)
    vectors = services.embed([walk.question for walk in walks], kind="query")
    lessons = []
    for walk, key, uid, vector in zip(walks, keys, uids, vectors, strict=True):
        useful = _useful(services, walk, answered)
        lesson = _Lesson(
            uid=uid,
            key=key,
            question=walk.question,
            vector=np.asarray(vector, dtype=np.float32),
            penalty=penalty,
            touches=_touches(services.corpus, walk, answered.owner, useful),
            starts=walk.roots(walk.places[number] for number in sorted(useful)) if walk.places else walk.seeds,
            summaries=walk.summaries,
        )
        lessons.append(lesson)
    return services.database.write(_learn_all, services, lessons, answered)


def unmarked(text: str) -> str:
    """Return an answer's text without its markers, which number passages that a judgement does not see."""
    return _MARKERS.sub("", text)


def unlearn(services: Services, learnings: Sequence[Row]) -> int:
    """Take learnings back, and let their trails remember the rest as if these had never been. Returns how many went."""
    return sum(
        services.database.write(_unlearn, services, owner, [row["uid"] for row in learnings if row["owner"] == owner])
        for owner in sorted({row["owner"] for row in learnings})
    )


def _learn_all(
    transaction: Transaction, services: Services, lessons: Sequence[_Lesson], answered: Answered
) -> list[Learnt]:
    check_embedder(transaction, services)
    return [_learn(transaction, services, lesson, answered) for lesson in lessons]


def _learn(transaction: Transaction, services: Services, lesson: _Lesson, answered: Answered) -> Learnt:
    corpus, owner = services.corpus, answered.owner
    number = draw_number(transaction, corpus=corpus, owner=owner)
    if learning_of(transaction, corpus=corpus, uid=lesson.uid):
        raise _twice(services.corpus, answered.memory)
    rows = [{"uid": uid, "ends": list(row["ends"])} for uid, row in lesson.touches.items()]
    held = trails_to_touch(transaction, corpus=corpus, rows=rows)
    trails = [_moved(row, lesson, dimensions=services.embedder.dimensions) for row in held]
    put_trails(transaction, corpus=corpus, owner=owner, rows=trails)
    touches = {row["uid"]: lesson.touches[row["uid"]] for row in held}
    put_learning(
        transaction,
        corpus=corpus,
        learning={
            "uid": lesson.uid,
            "key": lesson.key,
            "question": lesson.question,
            "owner": owner,
            "memory": answered.memory,
            "penalty": lesson.penalty,
            "starts": list(lesson.starts),
            "number": number,
            "vector": lesson.vector,
        },
        touches=[
            {"uid": uid, "effective": touch["effective"], "chunks": touch["chunks"]} for uid, touch in touches.items()
        ],
        summaries=lesson.summaries,
    )
    return Learnt(
        learning=lesson.uid,
        number=number,
        question=lesson.question,
        trails=len(touches),
        effective=sum(bool(touch["effective"]) for touch in touches.values()),
    )


def _moved(row: Row, lesson: _Lesson, *, dimensions: int) -> Row:
    """Return a trail as it is after the lesson."""
    touch = lesson.touches[row["uid"]]
    before = np.zeros(dimensions) if row["vector"] is None else np.asarray(row["vector"])
    moved = touched(
        before.astype(np.float32),
        Touch(question=lesson.vector, effective=touch["effective"], penalty=lesson.penalty),
    )
    length = float(np.linalg.norm(moved.astype(np.float64)))
    kept = {"tie": row["tie"], "alike": row["alike"] or 0.0}
    return {**touch, **kept, "uid": row["uid"], "vector": moved, "length": length}


def _unlearn(transaction: Transaction, services: Services, owner: str, uids: Sequence[str]) -> int:
    corpus = services.corpus
    check_embedder(transaction, services)
    lock_scope(transaction, corpus=corpus, owner=owner)
    there = [uid for uid in uids if learning_of(transaction, corpus=corpus, uid=uid)]
    trails = remove_learnings(transaction, corpus=corpus, uids=there)
    bare = replay_trails(transaction, corpus=corpus, uids=trails, dimensions=services.embedder.dimensions)
    remove_trails(transaction, corpus=corpus, uids=bare)
    return len(there)


def _useful(services: Services, walk: Recorded, answered: Answered) -> set[int]:
    """Return the numbers of the places that led to something of use: as the model judges, with all before them."""
    if not walk.places:
        return set()
    early = [place.uid for place in walk.places if place.passage and not place.chunks]
    passages = passage_chunks(services.database, corpus=services.corpus, uids=early) if early else {}
    stops = walk.stops
    cited = []
    for number, stop in enumerate(stops):
        chunks = {uid for place in stop for uid in place.chunks}
        chunks |= {chunk.uid for place in stop if place.passage for chunk in passages.get(place.uid, ())}
        if not answered.cited.isdisjoint(chunks):
            cited.append(number)
    task = JudgeUseful(question=walk.question, answer=answered.text, ways=tuple(_told(walk)), cited=tuple(cited))
    named = services.reply(task).useful
    # Each stop of use confirms all that led to it. The official code confirms the first one of a node alone.
    numbers = {id(place): number for number, place in enumerate(walk.places)}
    useful = [place for number in dict.fromkeys(named) if 0 <= number < len(stops) for place in stops[number]]
    return {numbers[id(before)] for place in useful for before in walk.before(place)}


def _told(walk: Recorded) -> list[str]:
    """Return the stops of a walk in words, in order, each with where it was reached from."""
    names = {place.uid: place.text for place in walk.places if not place.passage}
    told = []
    for first, *_ in walk.stops:
        origin = "" if first.passage else names.get(first.source, "the start")
        told.append(f"from {origin}: {first.text}" if origin else f"at the start: {first.text}")
    return told


def _touches(corpus: str, walk: Recorded, owner: str, useful: AbstractSet[int]) -> dict[str, Row]:
    """Return the trails of a walk by uid: their ends, whether they led to use, and the chunks that were read there."""
    found: dict[str, Row] = {}
    for number, place in enumerate(walk.places):
        ends = (place.uid,) if place.passage else tuple(sorted((place.source, place.uid)))
        uid = trail_uid(corpus, owner, ends)
        chunks = " ".join(place.chunks[:_QUOTED]) if not place.passage else ""
        found[uid] = {"key": _key(owner, ends), "ends": list(ends), "effective": number in useful, "chunks": chunks}
    return found


def trail_uid(corpus: str, owner: str, ends: Sequence[str]) -> str:
    """Return the uid of the trail between two nodes (uids) in either order, or of the passage of one anchor."""
    return built_uid(corpus, SYSTEM, kind="Trail", key=_key(owner, ends))


def _key(owner: str, ends: Sequence[str]) -> str:
    return "/".join((*sorted(ends), owner))


def _twice(corpus: str, memory: str) -> UsageError:
    command = f"`hgmem remindrag unlearn {memory} --corpus {corpus}`"
    return UsageError(f"memory {memory!r} was learnt before: {command} takes that back")
