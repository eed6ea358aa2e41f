"""Typed wrappers for `cypher/exporting.cypher`."""

from collections.abc import Sequence

from hgmem.errors import UsageError
from hgmem.graph.database import Row
from hgmem.graph.values import Runner


def corpus_properties(database: Runner, *, corpus: str) -> Row:
    """Return the corpus's own properties: embedder, settings, schema version, creation time."""
    rows = database.run("corpus_properties", corpus=corpus)
    if not rows:
        raise UsageError(f"corpus {corpus!r} was deleted during the export: nothing to export")
    properties: Row = rows[0]["properties"]
    return properties


def document_uids(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the next uids of documents, in order."""
    return [row["uid"] for row in database.run("document_uids", corpus=corpus, after=after, most=most)]


def chunk_uids(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the next uids of chunks, in order."""
    return [row["uid"] for row in database.run("chunk_uids", corpus=corpus, after=after, most=most)]


def entity_uids(database: Runner, *, corpus: str, shared: bool, after: str, most: int) -> list[str]:
    """Return the next uids of entities, of the corpus (`shared`) or its memories, in order."""
    return [row["uid"] for row in database.run("entity_uids", corpus=corpus, shared=shared, after=after, most=most)]


def relation_uids(database: Runner, *, corpus: str, shared: bool, after: str, most: int) -> list[str]:
    """Return the next uids of relations, of the corpus (`shared`) or its memories, in order."""
    return [row["uid"] for row in database.run("relation_uids", corpus=corpus, shared=shared, after=after, most=most)]


def memory_uids(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the next uids of memories, in order."""
    return [row["uid"] for row in database.run("memory_uids", corpus=corpus, after=after, most=most)]


def point_uids(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the next uids of memory points, in order."""
    return [row["uid"] for row in database.run("point_uids", corpus=corpus, after=after, most=most)]


def built_uids(database: Runner, *, corpus: str, after: str, most: int, learnt: bool = True) -> list[str]:
    """Return the next uids of built rows, in order, on request without what was learnt from questions."""
    rows = database.run("built_uids", corpus=corpus, learnt=learnt, after=after, most=most)
    return [row["uid"] for row in rows]


def unit_uids(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the next uids of units of builds, in order."""
    return [row["uid"] for row in database.run("unit_uids", corpus=corpus, after=after, most=most)]


def read_documents(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the stored documents."""
    return [row["record"] for row in database.run("read_documents", corpus=corpus, uids=list(uids))]


def read_chunks(database: Runner, *, corpus: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored chunks."""
    rows = database.run("read_chunks", corpus=corpus, uids=list(uids), embeddings=embeddings)
    return [row["record"] for row in rows]


def read_order(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return source and target of each NEXT_CHUNK from these chunks."""
    return [row["record"] for row in database.run("read_order", corpus=corpus, uids=list(uids))]


def read_entities(database: Runner, *, corpus: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored entities."""
    rows = database.run("read_entities", corpus=corpus, uids=list(uids), embeddings=embeddings)
    return [row["record"] for row in rows]


def read_mentions(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return entity and chunk of each FROM_CHUNK from these entities."""
    rows = database.run("read_mentions", corpus=corpus, uids=list(uids))
    return [{"entity": row["entity"], "chunk": chunk} for row in rows for chunk in row["chunks"]]


def read_relations(database: Runner, *, corpus: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored relations with the uids of their ends."""
    rows = database.run("read_relations", corpus=corpus, uids=list(uids), embeddings=embeddings)
    return [row["record"] for row in rows]


def read_builds(database: Runner, *, corpus: str) -> list[Row]:
    """Return the stored builds by system."""
    return [row["record"] for row in database.run("read_builds", corpus=corpus)]


def read_units(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the stored units of builds."""
    return [row["record"] for row in database.run("read_units", corpus=corpus, uids=list(uids))]


def read_built(database: Runner, *, corpus: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored built rows, each with its `unit`, if any, and whether it has an own vector."""
    rows = database.run("read_built", corpus=corpus, uids=list(uids), embeddings=embeddings)
    return [row["record"] for row in rows]


def read_support(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return source and target of each RESTS_ON from these rows or units."""
    return [row["record"] for row in database.run("read_support", corpus=corpus, uids=list(uids))]


def read_extensions(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return system, unit, row and `gives_vector` of each EXTENDS from these units."""
    return [row["record"] for row in database.run("read_extensions", corpus=corpus, uids=list(uids))]


def read_own_relationships(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the relationships from these rows that are not of hgmem's types."""
    return [row["record"] for row in database.run("read_own_relationships", corpus=corpus, uids=list(uids))]


def read_memory(database: Runner, *, corpus: str, memory: str, timeout: float, embeddings: bool) -> Row | None:
    """Return a memory with all its records in lists by kind, or None if it was deleted.

    `live` says whether its lease was renewed in the last `timeout` seconds.
    """
    rows = database.run("read_memory", corpus=corpus, memory=memory, timeout=timeout, embeddings=embeddings)
    return rows[0] if rows else None
