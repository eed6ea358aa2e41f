"""Typed twins of `cypher/memory.cypher`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

from hgmem.arguments import UID, check
from hgmem.draft import Draft
from hgmem.embed import Vectors
from hgmem.errors import ConflictError, UsageError
from hgmem.graph.database import Row, claimed
from hgmem.graph.retrieval import to_entity
from hgmem.graph.step_rows import birth_row, provisional_row, relation_row, step_row, subquery_row
from hgmem.graph.values import Runner, to_json, vector
from hgmem.inputs import Scalar
from hgmem.model import (
    Answer,
    Citation,
    Entity,
    Hit,
    MemoryPoint,
    Operation,
    Retrieved,
    Step,
    Subquery,
)
from hgmem.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who writes to which memory: every write names all three."""

    corpus: str
    memory: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A point as it is stored, with the points (uids) that became it."""

    point: MemoryPoint
    revises: tuple[str, ...]
    merges: tuple[str, ...]


def corpus_of(database: Runner, *, uid: str) -> tuple[str, str]:
    """Return the corpus and the memory of a memory, a point or an answer."""
    check({"uid": uid}, {"uid": UID})
    rows = database.run("corpus_of", uid=uid)
    if not rows:
        raise UsageError(
            f"there is no memory, point or answer {uid!r}: `hgmem memory list --corpus …` shows what there is"
        )
    return rows[0]["corpus"], rows[0]["memory"]


def create_memory(database: Runner, *, claim: Claim, properties: Mapping[str, Scalar]) -> None:
    """Write a new memory, held by this run."""
    rows = database.run("create_memory", **asdict(claim), properties=dict(properties))
    if not rows:
        raise _not_ready(claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What a memory was when it was claimed: its status until then, and the filters that hold from then on."""

    status: str
    filters: Mapping[str, tuple[str, ...]]


def claim_memory(database: Runner, *, claim: Claim, question: str, filters: str | None, timeout: float) -> Claimed:
    """Hold a memory for a question; `filters` (JSON) replace its own, None keeps them."""
    rows = database.run("claim_memory", **asdict(claim), question=question, filters=filters, timeout=timeout)
    if rows and not rows[0]["ready"]:
        raise _not_ready(claim)
    if not rows or not rows[0]["free"]:
        raise ConflictError(
            f"memory {claim.memory!r} is being worked on by another run: wait until that is done; if it died, its "
            f"claim runs out {timeout:g} s after its last sign"
        )
    return Claimed(status=str(rows[0]["before"]), filters=_filters(rows[0]["filters"]))


def renew_memory(database: Runner, *, claim: Claim) -> None:
    """Say that this run is alive; a lost claim is a `ConflictError`."""
    _held(database.run("renew_memory", **asdict(claim)), claim)


def release_memory(database: Runner, *, claim: Claim, status: str) -> None:
    """Give the claim back."""
    _held(database.run("release_memory", **asdict(claim), status=status), claim)


def write_step(
    database: Runner, *, claim: Claim, step: Step, draft: Draft, vectors: Mapping[str, Vectors]
) -> list[str]:
    """Write one whole step; `vectors` holds those of its new points, entities and relations, by uid.

    Returns the uids of entities that went while the step was made: the memory keeps them, yet without a vector.
    """
    rows = database.run(
        "write_step",
        **asdict(claim),
        step=step_row(step),
        subqueries=[subquery_row(number, one) for number, one in enumerate(step.retrieved, start=1)],
        provisionals=[provisional_row(entity, vectors) for entity in draft.provisionals.values()],
        relations=[relation_row(relation, vectors) for relation in draft.relations.values()],
        points=[birth_row(birth, vectors, claim.memory) for birth in draft.births],
        died=list(draft.died),
    )
    _held(rows, claim)
    return [str(uid) for uid in rows[0]["kept"]]


def write_answer(database: Runner, *, claim: Claim, answer: Answer, status: str) -> None:
    """Write the answer with its citations; the claim is given back, unless the memory's status stays `running`."""
    properties: Row = {
        "uid": answer.uid,
        "question": answer.question,
        "text": answer.text,
        "status": answer.status,
        "step": answer.step,
        "model": answer.model,
        "notes": list(answer.notes),
        "seconds": answer.seconds,
        "usage": to_json(answer.usage),
    }
    citations = [
        {"uid": f"{answer.uid}-{citation.marker}", "chunk": citation.chunk, "properties": asdict(citation)}
        for citation in answer.citations
    ]
    rows = database.run("write_answer", **asdict(claim), answer=properties, citations=citations, status=status)
    _held(rows, claim)


def list_memories(database: Runner, *, corpus: str) -> list[Row]:
    """Return the corpus's memories, newest first; `silent` as in `find_memory`."""
    return database.run("list_memories", corpus=corpus)


def find_memory(database: Runner, *, corpus: str, memory: str) -> Row:
    """Return the memory's own properties; `silent` is how many seconds ago its claim was renewed, if it is held."""
    rows = database.run("find_memory", corpus=corpus, memory=memory)
    if not rows:
        raise UsageError(
            f"corpus {corpus!r} has no memory {memory!r}: `hgmem memory list --corpus {corpus}` shows them"
        )
    return rows[0]


def memory_points(database: Runner, *, corpus: str, memory: str) -> list[StoredPoint]:
    """Return every point of the memory, dead ones too, in order of birth."""
    found: list[StoredPoint] = []
    for row in database.run("memory_points", corpus=corpus, memory=memory):
        entities = {entity["uid"]: to_entity(entity) for entity in row["entities"]}
        ties = {kind: dict(row[kind]) for kind in ("involves", "chunks", "revises", "merges")}
        found += [
            _stored(point, {kind: of.get(point["uid"], ()) for kind, of in ties.items()}, entities)
            for point in row["points"]
        ]
    return found


def point_scores(database: Runner, *, corpus: str, memory: str, query: Any, most: int) -> dict[str, float]:
    """Return how near each living point of the memory is to a vector, by uid; those that have a vector themselves.

    `most` is how many points the memory has, dead ones too.
    """
    rows = database.run("point_scores", corpus=corpus, memory=memory, vector=vector(query), most=most)
    return {str(uid): float(score) for row in rows for uid, score in row["scores"]}


def memory_steps(database: Runner, *, corpus: str, memory: str) -> list[Step]:
    """Return the memory's steps in order."""
    return [_to_step(row["step"]) for row in database.run("memory_steps", corpus=corpus, memory=memory)]


def memory_answers(database: Runner, *, corpus: str, memory: str) -> list[Row]:
    """Return the memory's answers in order of time, citations as values."""
    rows = [row["answer"] for row in database.run("memory_answers", corpus=corpus, memory=memory)]
    return [
        {
            **row,
            "notes": tuple(row["notes"] or ()),
            "usage": _usage(row["usage"]),
            "citations": tuple(Citation(**citation) for citation in row["citations"]),
        }
        for row in rows
    ]


def find_entities(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Entity]:
    """Return those of these entities that exist."""
    return [to_entity(row["entity"]) for row in database.run("find_entities", corpus=corpus, uids=list(uids))]


def _not_ready(claim: Claim) -> UsageError:
    return UsageError(f"corpus {claim.corpus!r} is not ready: it was deleted, or is being written")


def _held(rows: list[Row], claim: Claim) -> None:
    claimed(rows, what=f"memory {claim.memory!r}")


def _stored(row: Row, ties: Mapping[str, Sequence[str]], entities: Mapping[str, Entity]) -> StoredPoint:
    involved = [entities[uid] for uid in ties["involves"] if uid in entities]
    point = MemoryPoint(
        uid=row["uid"],
        description=row["description"],
        entities=tuple(sorted(involved, key=lambda entity: (entity.name, entity.uid))),
        chunks=tuple(ties["chunks"]),
        born=row["born"],
        died=row["died"],
    )
    return StoredPoint(point=point, revises=tuple(ties["revises"]), merges=tuple(ties["merges"]))


def _to_step(row: Row) -> Step:
    fields = {name: row[name] for name in ("number", "question", "strategy", "judgement", "seconds")}
    return Step(
        **fields,
        notes=tuple(row["notes"] or ()),
        usage=_usage(row["usage"]),
        filters=_filters(row["filters"]),
        planned=tuple(
            Subquery(**{**one, "targets": tuple(one["targets"])}) for one in json.loads(row["planned"] or "[]")
        ),
        operations=tuple(
            Operation(**{**operation, "parts": tuple(operation["parts"])})
            for operation in json.loads(row["operations"])
        ),
        # Sorted here again: the server does not always keep the order of a collected subquery that collects itself.
        retrieved=tuple(_to_retrieved(one) for one in sorted(row["subqueries"], key=itemgetter("number"))),
    )


def _to_retrieved(row: Row) -> Retrieved:
    subquery = Subquery(
        text=row["text"], concern=row["concern"], strategy=row["strategy"], targets=tuple(row["targets"])
    )
    return Retrieved(
        subquery=subquery,
        entities=tuple(Hit(**hit) for hit in sorted(row["entities"], key=itemgetter("rank"))),
        chunks=tuple(
            Hit(**{**hit, "source_id": hit["source_id"] or ""}) for hit in sorted(row["chunks"], key=itemgetter("rank"))
        ),
        relations=tuple(Hit(uid=uid, rank=rank) for rank, uid in enumerate(row["relations"], start=1)),
    )


def _filters(text: str | None) -> dict[str, tuple[str, ...]]:
    return {name: tuple(wanted) for name, wanted in json.loads(text or "{}").items()}


def _usage(text: str | None) -> Usage:
    stored = json.loads(text) if text else {}
    return Usage(**{name: stored[name] for name in ("calls", "seconds", "tokens") if name in stored})
