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


def entity_uids(database: Runner, *, corpus: str, shared: bool, after: str, most: int) -> list[str]:
    """Return the next uids of entities, of the corpus (`shared`) or its memories, in order."""
    return [row["uid"] for row in database.run("entity_uids", corpus=corpus, shared=shared, after=after, most=most)]


def relation_uids(database: Runner, *, corpus: str, shared: bool, after: str, most: int) -> list[str]:
    """Return the next uids of relations, of the corpus (`shared`) or its memories, in order."""
    return [row["uid"] for row in database.run("relation_uids", corpus=corpus, shared=shared, after=after, most=most)]


def built_uids(database: Runner, *, corpus: str, after: str, most: int, learnt: bool = True) -> list[str]:
    """Return the next uids of built rows, in order, on request without what was learnt from questions."""
    rows = database.run("built_uids", corpus=corpus, learnt=learnt, after=after, most=most)
    return [row["uid"] for row in rows]


def read_nodes(database: Runner, *, corpus: str, label: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored nodes of a label, in order of their uids.

    A built row has its `unit`, if any, and `replaced_vectors` if it has a vector of its own.
    """
    rows = database.run("read_nodes", corpus=corpus, rows=[{label: uid} for uid in uids], embeddings=embeddings)
    return [{name: value for name, value in row["record"].items() if value is not None} for row in rows]


def read_relationships(database: Runner, *, corpus: str, type_: str, uids: Sequence[str]) -> list[Row]:
    """Return the relationships of one of these types from nodes: NEXT_CHUNK, FROM_CHUNK, RESTS_ON, EXTENDS."""
    rows = database.run("read_relationships", corpus=corpus, type=type_, uids=list(uids))
    return [row["record"] for row in rows]


def read_relations(database: Runner, *, corpus: str, uids: Sequence[str], embeddings: bool) -> list[Row]:
    """Return the stored relations with the uids of their ends."""
    rows = database.run("read_relations", corpus=corpus, uids=list(uids), embeddings=embeddings)
    return [row["record"] for row in rows]


def read_builds(database: Runner, *, corpus: str) -> list[Row]:
    """Return the stored builds by system."""
    return [row["record"] for row in database.run("read_builds", corpus=corpus)]


def read_own_relationships(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the relationships from these rows that are not of hgmem's types."""
    return [row["record"] for row in database.run("read_own_relationships", corpus=corpus, uids=list(uids))]


def read_memory(database: Runner, *, corpus: str, memory: str, timeout: float, embeddings: bool) -> Row | None:
    """Return a memory with all its records in lists by kind, or None if it was deleted.

    `live` says whether its lease was renewed in the last `timeout` seconds.
    """
    rows = database.run("read_memory", corpus=corpus, memory=memory, timeout=timeout, embeddings=embeddings)
    return rows[0] if rows else None
