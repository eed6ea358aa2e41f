"""Typed twins of `cypher/invariants.cypher`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.values import Runner, vector

MOST = 10  # uids that are named of one broken promise
PAGE = 20_000  # uids read at once: each page looks at every uid of the corpus
MEMORIES = 200  # memories looked at together


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A promise that is broken `found` times, with the first uids."""

    promise: str
    found: int
    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory as the checks see it; `silent` is how many seconds ago its claim was renewed, where it is `held`."""

    uid: str
    status: str
    settings: str | None
    held: bool
    silent: int | None


def broken_documents(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what is wrong with documents and the chunks of each."""
    return _broken(database.run("broken_documents", corpus=corpus, most=MOST))


def broken_support(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what is wrong with what entities and relations rest on."""
    return _broken(database.run("broken_support", corpus=corpus, most=MOST))


def broken_vectors(database: Runner, *, corpus: str, dimensions: int) -> list[Broken]:
    """Return what lacks a unit vector of so many dimensions."""
    zero = vector([0.0] * dimensions)
    return _broken(database.run("broken_vectors", corpus=corpus, dimensions=dimensions, zero=zero, most=MOST))


def crossings(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what is joined to another corpus."""
    return _broken(database.run("crossings", corpus=corpus, most=MOST))


def leaks(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what one memory has of another's."""
    return _broken(database.run("leaks", corpus=corpus, most=MOST))


def orphans(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what belongs to a memory and is not reached from it."""
    return _broken(database.run("orphans", corpus=corpus, most=MOST))


def broken_citations(database: Runner, *, corpus: str) -> list[Broken]:
    """Return what is wrong with citations."""
    return _broken(database.run("broken_citations", corpus=corpus, most=MOST))


def broken_memories(database: Runner, *, corpus: str, memories: Sequence[str], adding: Sequence[str]) -> list[Broken]:
    """Return what is wrong with the points and steps of memories; `adding` are those whose merges add."""
    rows = database.run("broken_memories", corpus=corpus, memories=list(memories), adding=list(adding), most=MOST)
    return _broken(rows)


def memory_page(database: Runner, *, corpus: str, after: str) -> list[MemoryRow]:
    """Return the next memories by uid."""
    return [MemoryRow(**row) for row in database.run("memory_page", corpus=corpus, after=after, most=MEMORIES)]


def entity_page(database: Runner, *, corpus: str, after: str) -> list[str]:
    """Return the uids of the next entities."""
    return _uids(database.run("entity_page", corpus=corpus, after=after, most=PAGE))


def relation_page(database: Runner, *, corpus: str, after: str) -> list[str]:
    """Return the uids of the next relations."""
    return _uids(database.run("relation_page", corpus=corpus, after=after, most=PAGE))


def chunk_page(database: Runner, *, corpus: str, after: str) -> list[str]:
    """Return the uids of the next chunks."""
    return _uids(database.run("chunk_page", corpus=corpus, after=after, most=PAGE))


def stored_entities(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return memory, name, type, description of entities by uid; `embedded` says that the index is to find them."""
    return _by_uid(database.run("stored_entities", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_relations(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return memory, description, keywords, weight of relations by uid, and `embedded`."""
    return _by_uid(database.run("stored_relations", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_chunks(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return status and extraction of chunks by uid, and `embedded`."""
    return _by_uid(database.run("stored_chunks", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_points(database: Runner, *, corpus: str, memories: Sequence[str], dimensions: int) -> list[str]:
    """Return the uids of the points of memories that the index is to find."""
    return _uids(database.run("stored_points", corpus=corpus, memories=list(memories), dimensions=dimensions))


def unfolded_chunks(database: Runner, *, corpus: str, named: Mapping[str, tuple[list[str], list[str]]]) -> list[str]:
    """Return the chunks that an entity or relation does not know; `named` are uids of both by chunk."""
    rows = [{"uid": uid, "entities": ends, "relations": ties} for uid, (ends, ties) in named.items()]
    return _uids(database.run("unfolded_chunks", corpus=corpus, rows=rows))


def indexed_entities(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the entities that the vector index finds."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_entities", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_relations(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the relations that the vector index finds."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_relations", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_chunks(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the chunks that the vector index finds."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_chunks", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_points(database: Runner, *, corpus: str, memories: Sequence[str], query: Any, most: int) -> set[str]:
    """Return the points of memories that the vector index finds, `most` of them."""
    rows = database.run("indexed_points", corpus=corpus, memories=list(memories), vector=vector(query), most=most)
    return set(_uids(rows))


def _broken(rows: list[Row]) -> list[Broken]:
    return [Broken(promise=row["promise"], found=row["found"], uids=tuple(row["uids"])) for row in rows]


def _uids(rows: list[Row]) -> list[str]:
    return [str(row["uid"]) for row in rows]


def _by_uid(rows: list[Row]) -> dict[str, Row]:
    return {str(row["uid"]): row for row in rows}
