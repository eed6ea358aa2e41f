"""Trails: vectors that a learning pulls towards its question, or lessens (paper, section 3.3 and equations 1 to 3)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import cos, pi
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.builds.units import StoredRow
from hgmem.corpus.guarded_writes import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.database import Row, Transaction
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import Runner
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.remindrag import statements
from hgmem.systems.remindrag.recipes import Penalty
from hgmem.systems.remindrag.tasks import JudgeUseful
from hgmem.systems.remindrag.walk_record import RecordedWalk
from hgmem.text.identity import built_uid
from hgmem.values.records import Answer

Vector: TypeAlias = NDArray[np.float32]
_AT_ONCE = 500  # trails that a check reads together
_ALL = 10_000_000
_QUOTED = 5  # chunks that are kept of what was read at a node
_MARKERS = re.compile(r"\s*\[\d+\]")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A learning: its uid and number, its question, how many trails it touched, and how many of them led to use."""

    learning: str
    number: int
    question: str
    trails: int
    effective: int


def learn_walk(services: Services, answer: Answer, walk: RecordedWalk, *, owner: str, penalty: Penalty) -> Learnt:
    """Learn the walk of one answered question in one transaction, and return what was learnt.

    `owner` is that of the answer's memory. Raises `UsageError` where that has been done before.
    """
    uid = built_uid(services.corpus, statements.SYSTEM, kind="Learning", key=answer.memory)
    _check_new(services.database, services.corpus, uid, answer.memory)
    vector = services.embed([walk.question], kind="query")[0]
    useful = _useful(services, walk, answer)
    learning = {
        "uid": uid,
        "key": answer.memory,
        "question": walk.question,
        "owner": owner,
        "memory": answer.memory,
        "penalty": penalty,
        "starts": walk.roots(walk.places[number] for number in sorted(useful)) if walk.places else walk.seeds,
        "vector": np.asarray(vector, dtype=np.float32),
    }
    touches = _touches(services.corpus, walk, owner, useful)
    return services.database.write(_learn, services, learning, touches=touches, summaries=walk.summaries)


def unlearn(services: Services, learnings: Sequence[Row]) -> int:
    """Take learnings back, and let their trails remember the rest as if these had never been. Returns how many went."""
    return sum(
        services.database.write(_unlearn, services, owner, [row["uid"] for row in learnings if row["owner"] == owner])
        for owner in sorted({row["owner"] for row in learnings})
    )


def _learn(
    transaction: Transaction,
    services: Services,
    learning: Row,
    *,
    touches: Mapping[str, Row],
    summaries: Mapping[str, str],
) -> Learnt:
    """Write a learning, which gets its number here, and its trails by uid as they are once it touched them."""
    corpus, owner = services.corpus, learning["owner"]
    check_embedder(transaction, services)
    number = statements.draw_number(transaction, corpus=corpus, owner=owner)
    _check_new(transaction, corpus, learning["uid"], learning["memory"])
    ends = [{"uid": uid, "ends": touch["ends"]} for uid, touch in touches.items()]
    trails = []
    for row in transaction.run("trails_to_touch", corpus=corpus, rows=ends):
        touch = touches[row["uid"]]
        before = np.zeros(services.embedder.dimensions) if row["vector"] is None else np.asarray(row["vector"])
        question = Touch(question=learning["vector"], effective=touch["effective"], penalty=learning["penalty"])
        vector = touched(before.astype(np.float32), question)
        trail = {"uid": row["uid"], "tie": row["tie"], "alike": row["alike"] or 0.0}
        trails.append({**touch, **trail, "vector": vector, "length": length_of(vector)})
    statements.put_trails(transaction, corpus=corpus, owner=owner, rows=trails)
    statements.put_learning(
        transaction,
        corpus=corpus,
        learning={**learning, "number": number},
        touches=[{name: trail[name] for name in ("uid", "effective", "chunks")} for trail in trails],
        summaries=summaries,
    )
    return Learnt(
        learning=learning["uid"],
        number=number,
        question=learning["question"],
        trails=len(trails),
        effective=sum(bool(trail["effective"]) for trail in trails),
    )


def _unlearn(transaction: Transaction, services: Services, owner: str, uids: Sequence[str]) -> int:
    corpus = services.corpus
    check_embedder(transaction, services)
    transaction.run("lock_scope", corpus=corpus, scope=statements.scope_uid(corpus, owner))
    there = [uid for uid in uids if statements.learning_of(transaction, corpus=corpus, uid=uid)]
    stored = statements.touches_of(
        transaction, corpus=corpus, uids=statements.remove_learnings(transaction, corpus=corpus, uids=there)
    )
    left = [row for row in stored if row["touches"]]
    vectors = statements.learnt_questions(transaction, corpus=corpus, uids=[row["uid"] for row in left])
    trails = [_trail_row(row, vectors, dimensions=services.embedder.dimensions) for row in left]
    statements.set_trails(transaction, corpus=corpus, rows=trails)
    bare = [row["uid"] for row in stored if not row["touches"]]
    transaction.run("remove_trails", corpus=corpus, uids=bare)
    return len(there)


def _useful(services: Services, walk: RecordedWalk, answer: Answer) -> set[int]:
    """Return the numbers of the places that led to something of use: as the model judges, with all before them."""
    if not walk.places:
        return set()
    early = [place.uid for place in walk.places if place.passage and not place.chunks]
    passages = statements.passage_chunks(services.database, corpus=services.corpus, uids=early) if early else {}
    stops = walk.stops
    quoted = {citation.chunk for citation in answer.citations if citation.chunk}
    cited = []
    for number, stop in enumerate(stops):
        chunks = {uid for place in stop for uid in place.chunks}
        chunks |= {chunk.uid for place in stop if place.passage for chunk in passages.get(place.uid, ())}
        if not quoted.isdisjoint(chunks):
            cited.append(number)
    text = _MARKERS.sub("", answer.text)  # they number passages that the judgement does not see
    task = JudgeUseful(question=walk.question, answer=text, ways=_in_words(walk), cited=tuple(cited))
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
        key = trail_key(owner, ends)
        uid = built_uid(corpus, statements.SYSTEM, kind="Trail", key=key)
        chunks = " ".join(place.chunks[:_QUOTED]) if not place.passage else ""
        found[uid] = {"key": key, "ends": list(ends), "effective": number in useful, "chunks": chunks}
    return found


def trail_key(owner: str, ends: Sequence[str]) -> str:
    """Return the key of the trail between two nodes (uids) in either order, or of the passage of one anchor."""
    return "/".join((*sorted(ends), owner))


def _check_new(database: Runner, corpus: str, uid: str, memory: str) -> None:
    if statements.learning_of(database, corpus=corpus, uid=uid):
        command = f"`hgmem remindrag unlearn {memory} --corpus {corpus}`"
        raise UsageError(f"memory {memory!r} was learnt before: {command} takes that back")


def renewed_vectors(services: Services, rows: Sequence[StoredRow]) -> Mapping[str, Vectors]:
    """Return the vectors of learnings, which are those of their questions, and of trails, replayed from these.

    How alike the ends of the trails are is written at once: it follows from their new vectors.
    """
    questions = {row.uid: str(row.properties["question"]) for row in rows if row.kind == "Learning"}
    vectors = services.embed(list(questions.values()), kind="query")
    made: dict[str, Vectors] = dict(zip(questions, vectors, strict=True))
    if trails := [row.uid for row in rows if row.kind == "Trail"]:
        stored = statements.touches_of(services.database, corpus=services.corpus, uids=trails)
        texts = sorted({touch["question"] for row in stored for touch in row["touches"]})
        by_text = dict(zip(texts, services.embed(texts, kind="query"), strict=True))
        renewed = [_trail_row(row, by_text, dimensions=services.embedder.dimensions) for row in stored]
        statements.set_trails(services.database, corpus=services.corpus, rows=renewed)
        made |= {row["uid"]: row["vector"] for row in renewed}
    return made


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
    ties = {
        row["uid"]: row["tie"]
        for row in statements.list_trails(database, corpus=corpus, owners=None, query=None, k=_ALL)
    }
    uids = sorted(ties)
    for start in range(0, len(uids), _AT_ONCE):
        for row in statements.touches_of(database, corpus=corpus, uids=uids[start : start + _AT_ONCE]):
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
            vectors |= statements.learnt_questions(database, corpus=corpus, uids=[row["uid"]])
        again = _trail_row(row, vectors, dimensions=len(row["vector"]))["vector"]
        if not np.array_equal(again, np.asarray(row["vector"], dtype=np.float32)):
            yield row["uid"]


INVARIANTS = (
    OwnInvariant(name="ends", meaning="a trail lacks an end", violated=without_ends),
    OwnInvariant(name="learnt", meaning="a trail is not what its learnings made of it", violated=other_than_learnt),
)
