"""Typed wrappers for `cypher/memory.cypher`, and a whole step: its own statement and the writes of its system."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter, itemgetter
from typing import Any

from hgmem.errors import ConflictError, NotFoundError, UsageError
from hgmem.graph.database import Database, Row, Transaction, leased
from hgmem.graph.record_fields import VECTORS
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.retrieval import to_entity
from hgmem.graph.statements import find_statement
from hgmem.graph.values import Runner, attributes, from_properties, from_stored, to_json, to_properties, vector
from hgmem.models.embedding import Vectors
from hgmem.text.identity import provisional_uid
from hgmem.values.arguments import UID, check
from hgmem.values.evidence import Hit, Retrieved, Subquery, Write
from hgmem.values.graph_elements import Entity, Relation
from hgmem.values.inputs import Question, Scalar
from hgmem.values.records import Answer, Birth, Citation, MemoryPoint, QuoteStatus, Step, StepChanges


def subquery_row(number: int, one: Retrieved) -> Row:
    """Return a sub-query, numbered from 1, with what it retrieved."""
    own = {
        "number": number,
        "relations": [hit.uid for hit in one.relations],
        "built": to_json(one.built) if one.built else None,
    }
    return {
        "properties": to_properties(one.subquery) | own,
        "targets": list(one.subquery.targets),
        "entities": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.entities],
        "chunks": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.chunks],
    }


def provisional_row(entity: Entity, vectors: Mapping[str, Vectors]) -> Row:
    """Return a provisional entity of the memory."""
    return {
        "uid": entity.uid,
        "properties": to_properties(entity, "Provisional"),
        "vector": vector(vectors[entity.uid]),
    }


def relation_row(relation: Relation, vectors: Mapping[str, Vectors]) -> Row:
    """Return a relation of the memory, which no chunk supports."""
    return {
        "uid": relation.uid,
        "source": relation.source,
        "target": relation.target,
        "properties": {**to_properties(relation), "chunks": []},
        "vector": vector(vectors[relation.uid]),
    }


def birth_row(birth: Birth, vectors: Mapping[str, Vectors], memory: str) -> Row:
    """Return a new point with the entities and chunks that it involves.

    `kept` is the provisional uid for an entity that the corpus has deleted meanwhile.
    """
    point = birth.point
    return {
        "uid": point.uid,
        "properties": to_properties(point),
        "entities": [
            {
                "uid": entity.uid,
                "kept": entity.uid if entity.provisional else provisional_uid(memory, entity.uid),
                "name": entity.name,
                "type": entity.type,
                "description": entity.description,
            }
            for entity in point.entities
        ],
        "chunks": list(point.chunks),
        "revises": list(birth.revises),
        "merges": list(birth.merges),
        "vector": vector(vectors[point.uid]),
    }


def citation_row(citation: Citation, answer: str) -> Row:
    """Return a citation of an answer (uid)."""
    return {
        "uid": f"{answer}-{citation.marker}",
        "chunk": citation.chunk,
        "built": citation.built,
        "properties": to_properties(citation),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A run's lease on a memory, which every write names."""

    corpus: str
    memory: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A stored point, with the uids of the points that it revises or merges."""

    point: MemoryPoint
    revises: tuple[str, ...]
    merges: tuple[str, ...]


def corpus_of(database: Runner, *, uid: str, owner: str | None) -> tuple[str, str]:
    """Return the corpus and the memory of a memory, a point or an answer.

    Raises `NotFoundError` for an unknown uid, and for one of a memory that `owner` does not see.
    """
    return place_of(database, uid=uid, owner=owner)[:2]


def place_of(database: Runner, *, uid: str, owner: str | None) -> tuple[str, str, str]:
    """Return the corpus and the memory of a memory, a point or an answer, and whose it is, as `corpus_of` does."""
    check({"uid": uid}, {"uid": UID})
    rows = database.run("corpus_of", uid=uid, owner=owner)
    if not rows:
        raise NotFoundError(
            f"memory, point or answer {uid!r} not found: list memories with `hgmem memory list --corpus …`"
        )
    return rows[0]["corpus"], rows[0]["memory"], rows[0]["owner"]


def create_memory(database: Runner, *, lease: Lease, properties: Mapping[str, Scalar]) -> None:
    """Write a new memory, leased to this run."""
    rows = database.run("create_memory", **asdict(lease), properties=dict(properties))
    if not rows:
        raise not_ready(lease.corpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedMemory:
    """A memory's state when it was leased: its previous status, and its filters from now on."""

    status: str
    filters: Mapping[str, tuple[str, ...]]


def lease_memory(
    database: Runner, *, lease: Lease, question: Question, timeout: float, owner: str | None
) -> LeasedMemory:
    """Lease a memory for a question.

    The question's filters replace the memory's own, unless it has none. Raises `ConflictError` if another run has the
    lease, or if the memory does not have so many answers as the question says.
    """
    filters = None if question.filters is None else to_json(question.filters)
    rows = database.run(
        "lease_memory",
        **asdict(lease),
        question=question.text,
        filters=filters,
        timeout=timeout,
        owner=owner,
        answers=question.answers,
    )
    if rows and not rows[0]["ready"]:
        raise not_ready(lease.corpus)
    if not rows or not rows[0]["free"]:
        raise in_use(lease.memory, timeout)
    return LeasedMemory(status=str(rows[0]["before"]), filters=from_stored("filters", rows[0]["filters"] or "{}"))


def renew_memory(database: Runner, *, lease: Lease) -> None:
    """Renew the lease, or raise `ConflictError` if it is lost."""
    _held(database.run("renew_memory", **asdict(lease)), lease)


def release_memory(database: Runner, *, lease: Lease, status: str) -> None:
    """Release the lease, and set the memory's status."""
    _held(database.run("release_memory", **asdict(lease), status=status), lease)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStep:
    """When a step was written, and the uids of entities that the corpus deleted meanwhile, which the memory keeps."""

    created_at: str
    kept: list[str]


def write_step(
    database: Database, *, lease: Lease, step: Step, changes: StepChanges, vectors: Mapping[str, Vectors]
) -> WrittenStep:
    """Write one complete step, then the writes of its system in order: all of it, or nothing.

    `vectors` (by uid) are those of its new points, entities and relations. Entities that the memory keeps have none.
    """

    def write(transaction: Transaction) -> WrittenStep:
        rows = transaction.run(
            "write_step",
            **asdict(lease),
            step=to_properties(step),
            subqueries=[subquery_row(number, one) for number, one in enumerate(step.retrieved, start=1)],
            provisionals=[provisional_row(entity, vectors) for entity in changes.entities],
            relations=[relation_row(relation, vectors) for relation in changes.relations],
            points=[birth_row(birth, vectors, lease.memory) for birth in changes.births],
            died=list(changes.died),
            retired=[{"uid": uid, "reason": reason} for uid, reason in changes.retired.items()],
        )
        _held(rows, lease)
        question = {"corpus": lease.corpus, "memory": lease.memory}
        for one in changes.writes:
            taken = find_statement(one.statement).parameters
            given = {name: value for name, value in question.items() if name in taken}
            transaction.run(one.statement, **one.parameters, **given)
        return WrittenStep(created_at=rows[0]["created_at"], kept=[str(uid) for uid in rows[0]["kept"]])

    return database.write_as("write_step", write)


def write_answer(database: Runner, *, lease: Lease, answer: Answer, status: str) -> None:
    """Write the answer with its citations, and release the lease unless `status` is `running`."""
    citations = [citation_row(citation, answer.uid) for citation in answer.citations]
    rows = database.run(
        "write_answer", **asdict(lease), answer=to_properties(answer), citations=citations, status=status
    )
    _held(rows, lease)


def find_memory(database: Runner, *, corpus: str, memory: str, owner: str | None) -> Row:
    """Return the memory's properties.

    `silent` is the age of its lease's last heartbeat in seconds, or None without a lease.
    """
    rows = database.run("find_memory", corpus=corpus, memory=memory, owner=owner)
    if not rows:
        raise UsageError(
            f"corpus {corpus!r} has no memory {memory!r}: list them with `hgmem memory list --corpus {corpus}`"
        )
    return rows[0]


def memory_points(database: Runner, *, corpus: str, memory: str, owner: str | None) -> list[StoredPoint]:
    """Return every point of the memory, including superseded ones, in order of birth."""
    names = [field.name for field in RECORD_TYPES["MemoryPoint"].kept if field.type not in VECTORS]
    found: list[StoredPoint] = []
    for row in database.run("memory_points", corpus=corpus, memory=memory, owner=owner, names=names):
        entities = {entity["uid"]: to_entity(entity) for entity in row["entities"]}
        links = {kind: dict(row[kind]) for kind in ("involves", "chunks", "revises", "merges")}
        points = (dict(zip(names, values, strict=True)) for values in row["points"])
        found += [
            _stored(point, {kind: of.get(point["uid"], ()) for kind, of in links.items()}, entities) for point in points
        ]
    return found


def point_scores(database: Runner, *, corpus: str, memory: str, query: Any, most: int) -> dict[str, float]:
    """Return the similarity of each active point to a vector, by uid.

    Points without a vector are missing. `most` is the number of all points, including superseded ones.
    """
    rows = database.run("point_scores", corpus=corpus, memory=memory, vector=vector(query), most=most)
    return {str(uid): float(score) for row in rows for uid, score in row["scores"]}


def memory_steps(database: Runner, *, corpus: str, memory: str, owner: str | None) -> list[Step]:
    """Return the memory's steps in order."""
    return [_to_step(row["step"]) for row in database.run("memory_steps", corpus=corpus, memory=memory, owner=owner)]


def memory_answers(database: Runner, *, corpus: str, memory: str, owner: str | None) -> list[Row]:
    """Return the memory's answers, oldest first, with citations as values."""
    return [
        attributes(Answer, row["answer"])
        | {"citations": tuple(from_properties(Citation, each) for each in row["answer"]["citations"])}
        for row in database.run("memory_answers", corpus=corpus, memory=memory, owner=owner)
    ]


def quote_statuses(database: Runner, *, corpus: str, citations: Sequence[Citation]) -> list[QuoteStatus]:
    """Return whether the document of each citation still contains its quote, ignoring whitespace."""
    quotes = [
        {"number": number, "document": one.document, "word": max(words, key=len), "pattern": _pattern(words)}
        for number, one in enumerate(citations)
        if (words := one.quote.split())
    ]
    rows = database.run("quote_statuses", corpus=corpus, quotes=quotes)
    found = {row["number"]: row["found"] for row in rows}
    statuses: Mapping[bool | None, QuoteStatus] = {True: "in_document", False: "not_in_document"}
    return [statuses.get(found.get(number), "document_deleted") for number in range(len(citations))]


def not_ready(corpus: str) -> UsageError:
    """Return the error for a corpus whose memories can't be written now."""
    return UsageError(
        f"corpus {corpus!r} is not ready: it was deleted or is being written; check it with `hgmem corpora`"
    )


def in_use(memory: str, timeout: float) -> ConflictError:
    """Return the error for a memory whose lease another run has."""
    return ConflictError(
        f"memory {memory!r} is in use by another run: wait until it ends; if that run crashed, retry {timeout:g} s "
        "after its last heartbeat"
    )


def _held(rows: list[Row], lease: Lease) -> None:
    leased(rows, what=f"memory {lease.memory!r}")


def _stored(row: Row, links: Mapping[str, Sequence[str]], entities: Mapping[str, Entity]) -> StoredPoint:
    involved: dict[str, Entity] = {}  # of a class the first by name
    for one in sorted((entities[uid] for uid in links["involves"] if uid in entities), key=attrgetter("name", "uid")):
        involved.setdefault(one.thing, one)
    point = from_properties(
        MemoryPoint,
        row,
        entities=tuple(involved.values()),
        chunks=tuple(links["chunks"]),
        # A chunk that was deleted may have come back, and support the point again.
        deleted_chunks=tuple(uid for uid in dict.fromkeys(row["deleted_chunks"] or ()) if uid not in links["chunks"]),
    )
    return StoredPoint(point=point, revises=tuple(links["revises"]), merges=tuple(links["merges"]))


def _to_step(row: Row) -> Step:
    # Sorted again: the server does not always keep the order of nested COLLECT subqueries.
    subqueries = sorted(row["subqueries"], key=itemgetter("number"))
    return from_properties(Step, row, retrieved=tuple(map(_to_retrieved, subqueries)))


def _to_retrieved(row: Row) -> Retrieved:
    return Retrieved(
        subquery=from_properties(Subquery, row, targets=tuple(row["targets"])),
        entities=tuple(Hit(**hit) for hit in sorted(row["entities"], key=itemgetter("rank"))),
        chunks=tuple(
            Hit(**{**hit, "source_id": hit["source_id"] or ""}) for hit in sorted(row["chunks"], key=itemgetter("rank"))
        ),
        relations=tuple(Hit(uid=uid, rank=rank) for rank, uid in enumerate(row["relations"], start=1)),
        built=from_stored("retrieved built rows", row.get("built") or "[]"),
    )


def _pattern(words: Sequence[str]) -> str:
    """Return Java's regular expression for a text that has these words after one another."""
    literal = [r"\Q" + word.replace(r"\E", r"\E\\E\Q") + r"\E" for word in words]
    return r"(?sU).*" + r"[\s\x1c-\x1f]+".join(literal) + ".*"


_GIVEN = ("corpus", "memory")  # parameters that the recording gives


def check_writes(writes: Sequence[Write], *, system: str) -> None:
    """Raise `UsageError` for the first write that cannot be part of a step of this system."""
    for write in writes:
        if why := _misfit(write):
            raise UsageError(f"system {system!r} cannot write statement {write.statement!r}: {why}")


def _misfit(write: Write) -> str:
    """Return why a write cannot be part of a step, and the remedy, or `''`."""
    try:
        statement = find_statement(write.statement)
    except KeyError:
        return "it does not exist: name a statement of a Cypher file"
    if statement.mode != "write":
        return f"its mode is {statement.mode!r}: use a statement of mode 'write'"
    if "corpus" not in statement.parameters:
        return "it takes no $corpus: declare corpus, and use it on every node"
    if own := [name for name in _GIVEN if name in write.parameters]:
        return f"its ${own[0]} is that of the question: omit {own[0]!r} from its parameters"
    wanted = [name for name in statement.parameters if name not in _GIVEN]
    if set(wanted) != write.parameters.keys():
        return f"it was given the parameters {sorted(write.parameters)}: give {sorted(wanted)}"
    return ""
