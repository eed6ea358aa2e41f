"""Learning: trails that led to use are pulled towards the question, the others lose it (paper, section 3.3)."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from hgmem.corpus.guarded_writes import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.database import Row, Transaction
from hgmem.graph.values import Runner
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import Penalty
from hgmem.systems.remindrag.statements import (
    SYSTEM,
    draw_number,
    learning_of,
    passage_chunks,
    put_learning,
    put_trails,
    remove_learnings,
    scope_uid,
)
from hgmem.systems.remindrag.tasks import JudgeUseful
from hgmem.systems.remindrag.trails import Touch, Vector, length_of, replay_trails, touched
from hgmem.systems.remindrag.walk_record import RecordedWalk
from hgmem.text.identity import built_uid
from hgmem.values.records import Citation

_QUOTED = 5  # chunks that are kept of what was read at a node
_MARKERS = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer of a walk's question: its memory and the memory's owner, its text, and its citations."""

    memory: str
    owner: str
    text: str
    citations: Sequence[Citation]

    @property
    def unmarked(self) -> str:
        """The text without its markers, which number passages that a judgement does not see."""
        return _MARKERS.sub("", self.text)


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
    """What is learnt of a walk: each trail by uid with its ends, and whether it led to use, and where use began."""

    uid: str
    question: str
    vector: Vector
    penalty: Penalty
    touches: Mapping[str, Row]
    starts: Sequence[str]
    summaries: Mapping[str, str]


def learn_walk(services: Services, answered: Answered, walk: RecordedWalk, *, penalty: Penalty) -> Learnt:
    """Learn the walk of one question in one transaction, and return what was learnt.

    Raises `UsageError` where that has been done before.
    """
    uid = built_uid(services.corpus, SYSTEM, kind="Learning", key=answered.memory)
    _check_new(services.database, services.corpus, uid, answered.memory)
    vector = services.embed([walk.question], kind="query")[0]
    useful = _useful(services, walk, answered)
    lesson = _Lesson(
        uid=uid,
        question=walk.question,
        vector=np.asarray(vector, dtype=np.float32),
        penalty=penalty,
        touches=_touches(services.corpus, walk, answered.owner, useful),
        starts=walk.roots(walk.places[number] for number in sorted(useful)) if walk.places else walk.seeds,
        summaries=walk.summaries,
    )
    return services.database.write(_learn, services, lesson, answered)


def unlearn(services: Services, learnings: Sequence[Row]) -> int:
    """Take learnings back, and let their trails remember the rest as if these had never been. Returns how many went."""
    return sum(
        services.database.write(_unlearn, services, owner, [row["uid"] for row in learnings if row["owner"] == owner])
        for owner in sorted({row["owner"] for row in learnings})
    )


def _learn(transaction: Transaction, services: Services, lesson: _Lesson, answered: Answered) -> Learnt:
    corpus, owner = services.corpus, answered.owner
    check_embedder(transaction, services)
    number = draw_number(transaction, corpus=corpus, owner=owner)
    _check_new(transaction, corpus, lesson.uid, answered.memory)
    ends = [{"uid": uid, "ends": touch["ends"]} for uid, touch in lesson.touches.items()]
    stored = transaction.run("trails_to_touch", corpus=corpus, rows=ends)
    trails = [_moved(row, lesson, dimensions=services.embedder.dimensions) for row in stored]
    put_trails(transaction, corpus=corpus, owner=owner, rows=trails)
    put_learning(
        transaction,
        corpus=corpus,
        learning={
            "uid": lesson.uid,
            "key": answered.memory,
            "question": lesson.question,
            "owner": owner,
            "memory": answered.memory,
            "penalty": lesson.penalty,
            "starts": list(lesson.starts),
            "number": number,
            "vector": lesson.vector,
        },
        touches=[{name: trail[name] for name in ("uid", "effective", "chunks")} for trail in trails],
        summaries=lesson.summaries,
    )
    return Learnt(
        learning=lesson.uid,
        number=number,
        question=lesson.question,
        trails=len(trails),
        effective=sum(bool(trail["effective"]) for trail in trails),
    )


def _moved(row: Row, lesson: _Lesson, *, dimensions: int) -> Row:
    """Return a trail as it is after the lesson, with what touched it."""
    touch = lesson.touches[row["uid"]]
    before = np.zeros(dimensions) if row["vector"] is None else np.asarray(row["vector"])
    vector = touched(
        before.astype(np.float32),
        Touch(question=lesson.vector, effective=touch["effective"], penalty=lesson.penalty),
    )
    trail = {"uid": row["uid"], "tie": row["tie"], "alike": row["alike"] or 0.0}
    return {**touch, **trail, "vector": vector, "length": length_of(vector)}


def _unlearn(transaction: Transaction, services: Services, owner: str, uids: Sequence[str]) -> int:
    corpus = services.corpus
    check_embedder(transaction, services)
    transaction.run("lock_scope", corpus=corpus, scope=scope_uid(corpus, owner))
    there = [uid for uid in uids if learning_of(transaction, corpus=corpus, uid=uid)]
    trails = remove_learnings(transaction, corpus=corpus, uids=there)
    bare = replay_trails(transaction, corpus=corpus, uids=trails, dimensions=services.embedder.dimensions)
    transaction.run("remove_trails", corpus=corpus, uids=bare)
    return len(there)


def _useful(services: Services, walk: RecordedWalk, answered: Answered) -> set[int]:
    """Return the numbers of the places that led to something of use: as the model judges, with all before them."""
    if not walk.places:
        return set()
    early = [place.uid for place in walk.places if place.passage and not place.chunks]
    passages = passage_chunks(services.database, corpus=services.corpus, uids=early) if early else {}
    stops = walk.stops
    answers = {citation.chunk for citation in answered.citations if citation.chunk}
    cited = []
    for number, stop in enumerate(stops):
        chunks = {uid for place in stop for uid in place.chunks}
        chunks |= {chunk.uid for place in stop if place.passage for chunk in passages.get(place.uid, ())}
        if not answers.isdisjoint(chunks):
            cited.append(number)
    task = JudgeUseful(question=walk.question, answer=answered.unmarked, ways=_in_words(walk), cited=tuple(cited))
    named = services.reply(task).useful
    # Each stop of use confirms all that led to it. The official code confirms the first one of a node alone.
    numbers = {id(place): number for number, place in enumerate(walk.places)}
    useful = [place for number in dict.fromkeys(named) if 0 <= number < len(stops) for place in stops[number]]
    return {numbers[id(before)] for place in useful for before in walk.before(place)}


def _in_words(walk: RecordedWalk) -> tuple[str, ...]:
    """Return the stops of a walk in words, in order, each with where it was reached from."""
    names = {place.uid: place.text for place in walk.places if not place.passage}
    stops = []
    for first, *_ in walk.stops:
        origin = "" if first.passage else names.get(first.source, "the start")
        stops.append(f"from {origin}: {first.text}" if origin else f"at the start: {first.text}")
    return tuple(stops)


def _touches(corpus: str, walk: RecordedWalk, owner: str, useful: AbstractSet[int]) -> dict[str, Row]:
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


def _check_new(database: Runner, corpus: str, uid: str, memory: str) -> None:
    if learning_of(database, corpus=corpus, uid=uid):
        command = f"`hgmem remindrag unlearn {memory} --corpus {corpus}`"
        raise UsageError(f"memory {memory!r} was learnt before: {command} takes that back")
