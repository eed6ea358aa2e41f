"""Typed wrappers for `cypher/entities.cypher`.

Rows are sorted by uid, so that concurrent writers lock in the same order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from hgmem.graph.database import Row
from hgmem.graph.values import NOTHING, Runner, rows_with_vectors, uids_of, with_some_vectors
from hgmem.models.embedding import Vectors
from hgmem.text.identity import corpus_key, uid
from hgmem.values.graph_elements import (
    Description,
    EntityFields,
    EntityUid,
    RelationFields,
    RelationUid,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """An entity to write.

    `chunks` are those that mention it; `given` holds its pre-built contributions (JSON).
    """

    uid: EntityUid
    key: str
    chunks: tuple[str, ...]
    given: str | None = None
    fields: EntityFields | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """A relation to write, with the uids of its ends in order of their keys."""

    uid: RelationUid
    source: EntityUid
    target: EntityUid
    chunks: tuple[str, ...]
    given: str | None = None
    fields: RelationFields | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityInputs:
    """The stored contributions to an entity, from which its fields are computed.

    `chunks` are sorted; `extracted` are those with an extraction.
    """

    uid: EntityUid
    key: str
    given: str | None
    condensed: str | None
    chunks: tuple[str, ...]
    extracted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInputs:
    """The stored contributions to a relation, from which its fields are computed.

    `source` and `target` are keys. `chunks` are the uids that the relation names, `living` those that still exist
    (sorted), and `extracted` those with an extraction.
    """

    uid: RelationUid
    source: str
    target: str
    given: str | None
    condensed: str | None
    chunks: tuple[str, ...]
    living: tuple[str, ...]
    extracted: tuple[str, ...]


def entity_uid(corpus: str, key: str) -> EntityUid:
    """Return the uid of the entity with this key."""
    return EntityUid(uid(corpus, "entity", key))


def relation_uid(corpus: str, ends: tuple[str, str]) -> RelationUid:
    """Return the uid of the relation between these two keys."""
    return RelationUid(uid(corpus, "relation", *ends))


def touch_entities(database: Runner, *, corpus: str, rows: Iterable[EntityRow]) -> list[EntityInputs]:
    """Create missing entities, link them to their chunks and lock them.

    Returns their contributions.
    """
    plain = _sorted(_identity(row, corpus) for row in rows)
    return _inputs(EntityInputs, database.run("touch_entities", corpus=corpus, rows=plain))


def known_entities(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> set[EntityUid]:
    """Return those of the uids that are entities of the corpus."""
    return set(uids_of(database, "known_entities", corpus=corpus, uids=uids))


def lock_entities(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> None:
    """Lock the entities until the transaction ends."""
    database.run("lock_entities", corpus=corpus, uids=sorted(uids))


def entity_contributions(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> list[EntityInputs]:
    """Return the entities' contributions."""
    return _inputs(EntityInputs, database.run("entity_contributions", corpus=corpus, uids=list(uids)))


def chunk_extractions(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, str | None]:
    """Return the extractions (JSON) of existing chunks, by uid."""
    rows = database.run("chunk_extractions", corpus=corpus, uids=list(uids))
    return {row["uid"]: row["extraction"] for row in rows}


def write_entities(
    database: Runner, *, corpus: str, rows: Sequence[EntityRow], vectors: Mapping[str, Any] = NOTHING
) -> None:
    """Write fields and pre-built contributions, and drop vectors of texts that changed.

    `vectors` (by uid) holds the vectors of the new texts that are available.
    """
    plain = [{"uid": row.uid, "given": row.given, **_entity_fields(row.fields)} for row in rows]
    database.run("write_entities", corpus=corpus, rows=_sorted(with_some_vectors(plain, vectors)))


def create_entities(database: Runner, *, corpus: str, rows: Sequence[EntityRow], vectors: Vectors) -> None:
    """Write complete entities of an empty corpus with their vectors."""
    plain = [{**_identity(row, corpus), "given": row.given, **_entity_fields(row.fields)} for row in rows]
    database.run("create_entities", corpus=corpus, rows=_sorted(rows_with_vectors(plain, vectors)))


def touch_relations(database: Runner, *, corpus: str, rows: Iterable[RelationRow]) -> list[RelationInputs]:
    """Create missing relations with their chunks, and lock both ends.

    Returns their contributions.
    """
    return _inputs(RelationInputs, database.run("touch_relations", corpus=corpus, rows=_sorted(map(_ends, rows))))


def known_relations(database: Runner, *, corpus: str, uids: Sequence[RelationUid]) -> set[RelationUid]:
    """Return those of the uids that are relations of the corpus."""
    return set(uids_of(database, "known_relations", corpus=corpus, uids=uids))


def relation_contributions(database: Runner, *, corpus: str, uids: Sequence[RelationUid]) -> list[RelationInputs]:
    """Return the relations' contributions."""
    return _inputs(RelationInputs, database.run("relation_contributions", corpus=corpus, uids=list(uids)))


def write_relations(
    database: Runner, *, corpus: str, rows: Sequence[RelationRow], vectors: Mapping[str, Any] = NOTHING
) -> None:
    """Write fields, chunks and pre-built contributions, as `write_entities` does."""
    plain = [
        {"uid": row.uid, "chunks": list(row.chunks), "given": row.given, **_relation_fields(row.fields)} for row in rows
    ]
    database.run("write_relations", corpus=corpus, rows=_sorted(with_some_vectors(plain, vectors)))


def create_relations(database: Runner, *, corpus: str, rows: Sequence[RelationRow], vectors: Vectors) -> None:
    """Write complete relations of an empty corpus with their vectors."""
    plain = [{**_ends(row), "given": row.given, **_relation_fields(row.fields)} for row in rows]
    database.run("create_relations", corpus=corpus, rows=_sorted(rows_with_vectors(plain, vectors)))


def joined_entities(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> list[EntityRow]:
    """Return those of the entities that a relation still joins, without their descriptions."""
    return [
        EntityRow(
            uid=row["uid"],
            key=row["key"],
            chunks=(),
            fields=EntityFields(name=row["name"], type=row["type"], description=Description()),
        )
        for row in database.run("joined_entities", corpus=corpus, uids=list(uids))
    ]


def take_back(database: Runner, *, corpus: str, rows: Sequence[Row], relations: Sequence[RelationUid]) -> None:
    """Remove support that chunks no longer give.

    Each row has the chunk's uid, and the entities and relations (uids) that it still supports.
    """
    database.run("take_back", corpus=corpus, rows=list(rows), relations=list(relations))


def uids_by_kind(database: Runner, name: str, /, *, corpus: str) -> tuple[list[EntityUid], list[RelationUid]]:
    """Return the uids of the corpus's entities and relations that a statement finds."""
    [row] = database.run(name, corpus=corpus)
    return row["entities"], row["relations"]


def put_entity_vectors(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Vectors) -> None:
    """Write the vectors of rows (uid, name, description) that are still current."""
    database.run("put_entity_vectors", corpus=corpus, rows=_sorted(rows_with_vectors(rows, vectors)))


def put_relation_vectors(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Vectors) -> None:
    """Write the vectors of rows (uid, description, keywords) that are still current."""
    database.run("put_relation_vectors", corpus=corpus, rows=_sorted(rows_with_vectors(rows, vectors)))


def _inputs(kind: type[T], rows: Iterable[Row]) -> list[T]:
    return [
        kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
        for row in rows
    ]


def _ends(row: RelationRow) -> Row:
    return {"uid": row.uid, "source": row.source, "target": row.target, "chunks": list(row.chunks)}


def _identity(row: EntityRow, corpus: str) -> Row:
    return {"uid": row.uid, "key": row.key, "corpus_key": corpus_key(corpus), "chunks": list(row.chunks)}


def _entity_fields(fields: EntityFields | None) -> Row:
    return {"name": fields.name, "type": fields.type, **_description(fields.description)} if fields else {}


def _relation_fields(fields: RelationFields | None) -> Row:
    if fields is None:
        return {}
    return {"keywords": list(fields.keywords), "weight": fields.weight, **_description(fields.description)}


def _description(description: Description) -> Row:
    return {"description": description.text, "condensed": description.condensed, "cut": description.cut or None}


def _sorted(rows: Iterable[dict[str, Any]]) -> list[Row]:
    return sorted(rows, key=itemgetter("uid"))
