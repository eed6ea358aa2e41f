"""Rows of entities and relations for `cypher/entities.cypher`, and typed functions for some of its statements."""

from collections.abc import Iterable, Sequence

from hgmem.graph.database import Row
from hgmem.graph.values import Runner
from hgmem.text.identity import corpus_key, uid
from hgmem.values.graph_elements import Description, EntityFields, EntityUid, RelationFields, RelationUid


def entity_uid(corpus: str, key: str) -> EntityUid:
    """Return the uid of the entity with this key."""
    return EntityUid(uid(corpus, "entity", key))


def relation_uid(corpus: str, ends: tuple[str, str]) -> RelationUid:
    """Return the uid of the relation between these two keys."""
    return RelationUid(uid(corpus, "relation", *ends))


def entity_row(
    corpus: str, key: str, chunks: Iterable[str], *, given: str | None = None, fields: EntityFields | None = None
) -> Row:
    """Return an entity to write, with the chunks that mention it and its pre-built contributions (JSON)."""
    row = {"uid": entity_uid(corpus, key), "key": key, "corpus_key": corpus_key(corpus), "chunks": list(chunks)}
    if fields is None:
        return row
    return {**row, "given": given, "name": fields.name, "type": fields.type, **_description(fields.description)}


def relation_row(
    corpus: str,
    ends: tuple[str, str],
    chunks: Iterable[str],
    *,
    given: str | None = None,
    fields: RelationFields | None = None,
) -> Row:
    """Return a relation to write, with the uids of its ends in order of their keys."""
    source, target = (entity_uid(corpus, end) for end in ends)
    row = {"uid": relation_uid(corpus, ends), "source": source, "target": target, "chunks": list(chunks)}
    if fields is None:
        return row
    computed = {"keywords": list(fields.keywords), "weight": fields.weight, **_description(fields.description)}
    return {**row, "given": given, **computed}


def _description(description: Description) -> Row:
    return {"description": description.text, "condensed": description.condensed, "cut": description.cut or None}


def lock_entities(database: Runner, *, corpus: str, uids: Iterable[EntityUid]) -> None:
    """Lock the entities until the transaction ends."""
    database.run("lock_entities", corpus=corpus, uids=sorted(uids))


def joined_entities(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> list[Row]:
    """Return those of the entities that a relation still joins, to be written without their descriptions."""
    return [
        entity_row(
            corpus, row["key"], (), fields=EntityFields(name=row["name"], type=row["type"], description=Description())
        )
        for row in database.run("joined_entities", corpus=corpus, uids=list(uids))
    ]


def uids_by_kind(database: Runner, name: str, /, *, corpus: str) -> tuple[list[EntityUid], list[RelationUid]]:
    """Return the uids of the corpus's entities and relations that a statement finds."""
    [row] = database.run(name, corpus=corpus)
    return row["entities"], row["relations"]
