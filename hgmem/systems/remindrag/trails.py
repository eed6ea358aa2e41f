"""Trails: vectors that a learning pulls towards its question, or lessens (paper, sections 3.2 and 4)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from math import cos, pi
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.builds.units import StoredRow
from hgmem.corpus.guarded_writes import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.database import Row, Transaction
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.retrieval import find_chunks
from hgmem.graph.values import Runner, vector
from hgmem.models.embedding import Vectors
from hgmem.retrieval.rendering import heading
from hgmem.services import Services
from hgmem.systems.remindrag.findings import Seen
from hgmem.systems.remindrag.recipes import Judge, Penalty, ReMindRAGConfig
from hgmem.systems.remindrag.tasks import JudgeUseful
from hgmem.systems.remindrag.walk_record import SYSTEM, Place, RecordedWalk, anchors_of, passage_chunks
from hgmem.text.identity import built_uid, layer_key
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Answer

Vector: TypeAlias = NDArray[np.float32]
_LEAST = 1e-6  # length below which a trail has no direction
_AT_ONCE = 500  # trails that a check reads together
_ALL = 10_000_000
_QUOTED = 5  # chunks that are kept of what was read at a node
_MARKERS = re.compile(r"\s*\[\d+\]")
_FADING = 0.6  # share of what is above the floor that a trail of no use loses
_FLOOR = 0.3  # of its part along the question, below which it is strong for nothing


def delta(x: float) -> float:
    """Return δ(x) = (2/π)·cos(πx/2), how far a trail of length x moves (paper, 3.2.1: a cosine of the norm)."""
    return 2 / pi * cos(pi * x / 2)


LEARNT_ONCE = delta(0)
"""The length of a trail after one learning."""


def touched(trail: Vector, *, question: Vector, effective: bool, penalty: Penalty, beside: float = 0.0) -> Vector:
    """Return a trail's vector w after one learning of a question with the unit vector q̂ (paper, section 3.2.1).

    Effective: w + δ(‖w‖)·q̂. Else w loses of its part p along q̂, if that is positive: by the penalty `fade` a share of
    what is above a floor (docs/decisions/0035), by `shrink` the share δ(p), by `forget` the share max(δ(p), p), and by
    `off` nothing. An owner's trail counts with everybody's: `beside` is that one's part along q̂, and part of p.
    """
    # Computed in double precision and stored as float32 after each learning, so that a replay gives the same bits.
    before, asked = trail.astype(np.float64), question.astype(np.float64)
    if effective:
        return np.asarray(before + delta(length_of(trail)) * asked, dtype=np.float32)
    along = float(before @ asked) + beside
    if along <= 0 or penalty == "off":
        return trail
    if penalty == "fade":
        loss = _FADING * max(0.0, along - _FLOOR)
    else:
        share = abs(delta(along)) if penalty == "shrink" else max(abs(delta(along)), along)
        loss = min(share, 1.0) * along
    return np.asarray(before - loss * asked, dtype=np.float32)


def replayed(touches: Iterable[Row], *, dimensions: int) -> Vector:
    """Return the vector of a trail from all of its learnings in their order. Without any, it is zero."""
    trail: Vector = np.zeros(dimensions, dtype=np.float32)
    for touch in touches:
        trail = touched(trail, **touch)
    return trail


def length_of(trail: Vector) -> float:
    """Return the length of a trail's vector."""
    return float(np.linalg.norm(trail.astype(np.float64)))


def least_cosine(alike: float, length: float, *, alpha: float, strong: float) -> float:
    """Return the cosine of question and trail above which a trail of this length is strong, that is R > λ."""
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


def learn_walk(
    services: Services, answer: Answer, walk: RecordedWalk, *, owner: str, config: ReMindRAGConfig
) -> Learnt:
    """Learn the walk of one answered question in one transaction, and return what was learnt.

    `owner` is that of the answer's memory, `config` that of its walk. Raises `UsageError` where that has been done
    before.
    """
    _check_new(services, answer.memory, answer.memory, owner=owner)
    lesson = _lesson(services, answer, walk, owner=owner, config=config)
    return services.database.write(_learn, services, *lesson)


def correct_walk(
    services: Services, answer: Answer, walk: RecordedWalk, *, owner: str, config: ReMindRAGConfig
) -> Learnt:
    """Record that the walk of a wrong answer was of no use, and take back what it taught this owner before.

    Raises `UsageError` where that has been done before.
    """
    key = _wrong(answer.memory, owner)
    _check_new(services, key, answer.memory, owner=owner)
    learning, touches = _lesson(services, answer, walk, owner=owner, config=replace(config, judge="cited"))
    learning |= {"uid": _learning_uid(services.corpus, key), "key": key, "starts": []}
    useless = {uid: {**touch, "effective": False} for uid, touch in touches.items()}

    def write(transaction: Transaction) -> Learnt:
        unlearn(transaction, services, owner=owner, uids=[_learning_uid(services.corpus, answer.memory)])
        return _learn(transaction, services, learning, useless)

    return services.database.write(write)


def _lesson(
    services: Services, answer: Answer, walk: RecordedWalk, *, owner: str, config: ReMindRAGConfig
) -> tuple[Row, dict[str, Row]]:
    """Return what is learnt of a walk, and the trails that it touches."""
    query = services.embed([walk.question], kind="query")[0]
    if config.starts:
        _add_cited(services, walk, answer)
    useful = _useful(services, walk, answer, judge=config.judge)
    learning = {
        "uid": _learning_uid(services.corpus, answer.memory),
        "key": answer.memory,
        "question": walk.question,
        "owner": owner,
        "memory": answer.memory,
        "penalty": config.penalty,
        "cited": list(dict.fromkeys(citation.chunk for citation in answer.citations if citation.chunk)),
        "starts": walk.roots(walk.places[number] for number in sorted(useful)) if walk.places else [],
        "vector": np.asarray(query, dtype=np.float32),
    }
    return learning, _touches(services.corpus, walk, owner, useful)


def _learning_uid(corpus: str, key: str) -> str:
    return built_uid(corpus, SYSTEM, kind="Learning", key=key)


def _add_cited(services: Services, walk: RecordedWalk, answer: Answer) -> None:
    """Add the passages that the answer cites and the walk did not enter, as places at which a walk may begin.

    A first look found their chunks, or they filled the room that the walk left.
    """
    early = [place.uid for place in walk.places if place.passage and not place.chunks]
    read = {chunk.uid for chunks in _passages(services, early).values() for chunk in chunks}
    read.update(uid for place in walk.places for uid in place.chunks)
    cited = dict.fromkeys(citation.chunk for citation in answer.citations if citation.chunk not in {"", *read})
    for row in anchors_of(services.database, corpus=services.corpus, chunks=list(cited)):
        walk.seeds.append(row["uid"])
        chunks = tuple(row["chunks"])
        place = Place(
            uid=row["uid"], source=row["uid"], text=row["text"], passage=True, chunks=chunks, told=row["text"]
        )
        walk.places.append(place)


def _passages(services: Services, uids: Sequence[str]) -> dict[str, list[Chunk]]:
    return passage_chunks(services.database, corpus=services.corpus, uids=uids) if uids else {}


def _learn(transaction: Transaction, services: Services, learning: Row, touches: Mapping[str, Row]) -> Learnt:
    """Write a learning, which gets its number here, and its trails by uid as they are once it touched them."""
    corpus, owner = services.corpus, learning["owner"]
    check_embedder(transaction, services)
    # Others wait for their number until the transaction ends.
    [drawn] = transaction.run(
        "draw_number",
        corpus=corpus,
        scope=_scope_uid(corpus, owner),
        owner=owner,
        layer_key=layer_key(corpus, SYSTEM, "TrailScope"),
    )
    number = int(drawn["number"])
    _check_new(services, learning["key"], learning["memory"], owner=owner, database=transaction)
    trails = _touched_trails(transaction, corpus, learning, touches)
    put_trails(transaction, corpus=corpus, owner=owner, rows=trails)
    transaction.run(
        "put_learning",
        corpus=corpus,
        layer_key=layer_key(corpus, SYSTEM, "Learning"),
        learning={**learning, "number": number, "vector": vector(learning["vector"])},
        touches=[{name: trail[name] for name in ("uid", "effective", "chunks", "beside")} for trail in trails],
    )
    return Learnt(
        learning=learning["uid"],
        number=number,
        question=learning["question"],
        trails=len(trails),
        effective=sum(bool(trail["effective"]) for trail in trails),
    )


def _touched_trails(transaction: Transaction, corpus: str, learning: Row, touches: Mapping[str, Row]) -> list[Row]:
    """Return the trails as they are once a learning touched them: all of its owner's between the places of each touch.

    One that two touches meet, as names became one place, was of use if either was.
    """
    ends = [{"uid": uid, "ends": touch["ends"]} for uid, touch in touches.items()]
    rows = transaction.run("trails_to_touch", corpus=corpus, owner=learning["owner"], rows=ends)
    trails: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: bool(touches[row["touch"]]["effective"])):
        touch = touches[row["touch"]]
        before = np.zeros(len(learning["vector"])) if row["vector"] is None else np.asarray(row["vector"])
        beside = max((float(np.asarray(shared) @ learning["vector"]) for shared in row["shared"]), default=0.0)
        trail = touched(
            before.astype(np.float32),
            question=learning["vector"],
            effective=touch["effective"],
            penalty=learning["penalty"],
            beside=beside,
        )
        kept = touch["chunks"] if touch["effective"] and touch["chunks"] else row["kept"] or ""
        own = {"uid": row["uid"], "tie": row["tie"], "ends": row["ends"], "alike": row["alike"] or 0.0, "kept": kept}
        trails[row["uid"]] = {**touch, **own, "beside": beside, "vector": trail, "length": length_of(trail)}
    return list(trails.values())


def put_trails(database: Runner, *, corpus: str, owner: str, rows: Sequence[Row]) -> None:
    """Write trails: uid, key, tie, ends, length, alike, vector, and the chunks `kept` of what was read there."""
    layer = layer_key(corpus, SYSTEM, "Trail")
    database.run("put_trails", corpus=corpus, owner=owner, layer_key=layer, rows=_packed(rows))


def _set_trails(database: Runner, corpus: str, rows: Sequence[Row]) -> None:
    """Write what trails remember: uid, length, alike, vector, kept."""
    database.run("set_trails", corpus=corpus, rows=_packed(rows))


def _packed(rows: Iterable[Row]) -> list[Row]:
    return [{**row, "vector": vector(row["vector"])} for row in rows]


def _scope_uid(corpus: str, owner: str) -> str:
    """Return the uid of the node that numbers an owner's learnings."""
    return built_uid(corpus, SYSTEM, kind="TrailScope", key=owner)


def unlearn(transaction: Transaction, services: Services, *, owner: str, uids: Sequence[str]) -> int:
    """Take an owner's learnings back, and let their trails remember the rest as if these had never been.

    Returns how many went.
    """
    corpus = services.corpus
    check_embedder(transaction, services)
    transaction.run("lock_scope", corpus=corpus, scope=_scope_uid(corpus, owner))
    removed = transaction.run(
        "remove_learnings", corpus=corpus, owner=owner, uids=list(uids)
    )  # those that are still there
    stored = _touches_of(transaction, corpus, sorted({uid for row in removed for uid in row["trails"]}))
    left = [row for row in stored if row["touches"]]
    vectors = _learnt_questions(transaction, corpus, left)
    trails = [_trail_row(row, vectors, dimensions=services.embedder.dimensions) for row in left]
    _set_trails(transaction, corpus, trails)
    bare = [row["uid"] for row in stored if not row["touches"]]
    transaction.run("remove_trails", corpus=corpus, uids=bare)
    return len(removed)


def _touches_of(database: Runner, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return for each trail what touched it, in order, and how alike its ends are."""
    return database.run("touches_of", corpus=corpus, uids=list(uids))


def _learnt_questions(database: Runner, corpus: str, trails: Sequence[Row]) -> dict[str, Any]:
    """Return the vectors of the questions whose learnings touched these trails, by question. A lost one is NaN."""
    rows = database.run("learnt_questions", corpus=corpus, uids=[trail["uid"] for trail in trails])
    found = {row["question"]: row["vector"].to_numpy() if row["vector"] else np.nan for row in rows}
    return {question: np.asarray(values, dtype=np.float32) for question, values in found.items()}


def _useful(services: Services, walk: RecordedWalk, answer: Answer, *, judge: Judge) -> set[int]:
    """Return the numbers of the places that led to something of use, with all before them.

    Of use is what the answer cites, or what the model says.
    """
    if not walk.places:
        return set()
    early = [place.uid for place in walk.places if place.passage and not place.chunks]
    passages = _passages(services, early)
    stops = walk.stops
    quoted = {citation.chunk for citation in answer.citations if citation.chunk}
    read = [
        [
            *(uid for place in stop for uid in place.chunks),
            *(chunk.uid for place in stop if place.passage for chunk in passages.get(place.uid, ())),
        ]
        for stop in stops
    ]
    named: Sequence[int] = [number for number, chunks in enumerate(read) if not quoted.isdisjoint(chunks)]
    if judge == "model":
        text = _MARKERS.sub("", answer.text)  # they number passages that the judgement does not see
        told = _in_words(services, walk, read)
        task = JudgeUseful(question=walk.question, answer=text, ways=told, cited=tuple(named))
        named = services.reply(task).useful
    # Each stop of use confirms all that led to it. The official code confirms the first one of a node alone.
    numbers = {id(place): number for number, place in enumerate(walk.places)}
    useful = [place for number in dict.fromkeys(named) if 0 <= number < len(stops) for place in stops[number]]
    return {numbers[id(before)] for place in useful for before in walk.before(place)}


def _in_words(services: Services, walk: RecordedWalk, read: Sequence[Sequence[str]]) -> tuple[Seen, ...]:
    """Return the stops of a walk in order, each with where it was reached from, and what was found and read there.

    A summary stands for the chunks (uids) that were read.
    """
    names = {place.uid: place.text for place in walk.places if not place.passage}
    wanted = {
        uid for stop, uids in zip(walk.stops, read, strict=True) if stop[0].uid not in walk.summaries for uid in uids
    }
    chunks = find_chunks(services.database, corpus=services.corpus, uids=sorted(wanted))
    stops = []
    for (first, *_), uids in zip(walk.stops, read, strict=True):
        origin = "" if first.passage else names.get(first.source, "the start")
        title = f"from {origin}: {first.told}" if origin else f"at the start: {first.told}"
        summary = walk.summaries.get(first.uid)
        known = [chunks[uid] for uid in dict.fromkeys(uids) if uid in chunks]
        texts = [summary] if summary else [f"{heading(chunk)}\n{chunk.text}" for chunk in known]
        stops.append(Seen(title=title, text="\n".join(filter(None, [first.found, *texts]))))
    return tuple(stops)


def _touches(corpus: str, walk: RecordedWalk, owner: str, useful: AbstractSet[int]) -> dict[str, Row]:
    """Return the trails of a walk by uid: their ends, whether they led to use, and the chunks that were read there."""
    found: dict[str, Row] = {}
    for number, place in enumerate(walk.places):
        ends = (place.uid,) if place.passage else tuple(sorted((place.source, place.uid)))
        key = trail_key(owner, ends)
        uid = built_uid(corpus, SYSTEM, kind="Trail", key=key)
        chunks = " ".join(place.chunks[:_QUOTED]) if not place.passage else ""
        found[uid] = {"key": key, "ends": list(ends), "effective": number in useful, "chunks": chunks}
    return found


def trail_key(owner: str, ends: Sequence[str]) -> str:
    """Return the key of the trail between two nodes (uids) in either order, or of the passage of one anchor."""
    return "/".join((*sorted(ends), owner))


def _wrong(memory: str, owner: str) -> str:
    """Return the key of the learning that a memory's answer was wrong for an owner."""
    return f"{memory} {owner} wrong"


def _check_new(services: Services, key: str, memory: str, *, owner: str, database: Runner | None = None) -> None:
    """Raise `UsageError` where a memory's learning of this key was learnt, or its answer was wrong for the owner."""
    corpus = services.corpus
    for each in dict.fromkeys((key, _wrong(memory, owner))):
        if (database or services.database).run("learning_of", corpus=corpus, uid=_learning_uid(corpus, each)):
            command = f"`hgmem remindrag unlearn {memory} --corpus {corpus}`"
            done = "learnt" if each == memory else "recorded as wrong"
            raise UsageError(f"memory {memory!r} was {done} before: {command} takes that back")


def renewed_vectors(services: Services, rows: Sequence[StoredRow]) -> Mapping[str, Vectors]:
    """Return the vectors of learnings, which are those of their questions, and of trails, replayed from these.

    How alike the ends of the trails are is written at once: it follows from their new vectors.
    """
    questions = {row.uid: str(row.properties["question"]) for row in rows if row.kind == "Learning"}
    vectors = services.embed(list(questions.values()), kind="query")
    made: dict[str, Vectors] = dict(zip(questions, vectors, strict=True))
    if trails := [row.uid for row in rows if row.kind == "Trail"]:
        stored = _touches_of(services.database, services.corpus, trails)
        texts = sorted({touch["question"] for row in stored for touch in row["touches"]})
        by_text = dict(zip(texts, services.embed(texts, kind="query"), strict=True))
        renewed = [_trail_row(row, by_text, dimensions=services.embedder.dimensions) for row in stored]
        _set_trails(services.database, services.corpus, renewed)
        made |= {row["uid"]: row["vector"] for row in renewed}
    return made


def _trail_row(row: Row, vectors: Mapping[str, Vectors], *, dimensions: int) -> Row:
    """Return a trail as it follows from its learnings in their order, with the vectors of their questions."""
    touches = [
        {
            "question": np.asarray(vectors[touch["question"]], dtype=np.float32),
            **{name: touch[name] for name in ("effective", "penalty", "beside")},
        }
        for touch in row["touches"]
    ]
    trail = replayed(touches, dimensions=dimensions)
    kept = next((touch["chunks"] for touch in reversed(row["touches"]) if touch["effective"] and touch["chunks"]), "")
    return {"uid": row["uid"], "vector": trail, "length": length_of(trail), "alike": row["alike"] or 0.0, "kept": kept}


def list_trails(
    database: Runner, *, corpus: str, owners: Sequence[str] | None, query: Vectors | None, k: int
) -> list[Row]:
    """Return the k strongest trails, for a question's unit vector if there is one, with their ends by name."""
    given = None if query is None else vector(query)
    seen = None if owners is None else list(owners)
    return database.run("list_trails", corpus=corpus, owners=seen, vector=given, k=k, least=_LEAST)


def _trails(database: Runner, corpus: str) -> list[Row]:
    return list_trails(database, corpus=corpus, owners=None, query=None, k=_ALL)


def without_ends(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) that do not have the ends of their tie."""
    return (row["uid"] for row in _trails(database, corpus) if len(row["ends"]) != 1 + (row["tie"] != "PASSAGE"))


def other_than_learnt(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) whose vector or chunks are not those of their learnings in order, or that have none."""
    uids, vectors = sorted(row["uid"] for row in _trails(database, corpus)), dict[str, Any]()
    pages = (_touches_of(database, corpus, uids[at : at + _AT_ONCE]) for at in range(0, len(uids), _AT_ONCE))
    for row in chain.from_iterable(pages):
        if not row["touches"] or row["vector"] is None:
            yield row["uid"]
            continue
        if any(touch["question"] not in vectors for touch in row["touches"]):
            vectors |= _learnt_questions(database, corpus, [row])
        again = _trail_row(row, vectors, dimensions=len(row["vector"]))
        stored = np.asarray(row["vector"], dtype=np.float32)
        if again["kept"] != row["kept"] or not np.array_equal(again["vector"], stored):
            yield row["uid"]


INVARIANTS = (
    OwnInvariant(name="ends", meaning="a trail lacks an end", violated=without_ends),
    OwnInvariant(name="learnt", meaning="a trail is not what its learnings made of it", violated=other_than_learnt),
)
