"""Invariants of systems' builds, and typed wrappers for `cypher/invariants.cypher`, which reads violations of ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.schema import TYPES
from hgmem.graph.values import Runner, vector

MOST = 10  # uids listed per violated invariant
MEMORIES = 200  # memories checked together


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInvariant:
    """An invariant of a system's build.

    - `meaning`: what a violation is, such as "a topic has no gists".
    - `violated(database, corpus)`: returns the uids of what violates it. It reads the database and writes nothing.
    """

    name: str
    meaning: str
    violated: Callable[[Runner, str], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInvariants:
    """The invariants of one system."""

    system: str
    invariants: Sequence[OwnInvariant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that is violated `found` times, with the first uids."""

    invariant: str
    found: int
    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory as the checks read it.

    `held` says that a run has its lease, whose last heartbeat was `silent` seconds ago.
    """

    uid: str
    status: str
    settings: str | None
    held: bool
    silent: int | None


def broken_documents(database: Runner, *, corpus: str) -> list[Violation]:
    """Return violations in documents and their chunks."""
    return _violations(database.run("broken_documents", corpus=corpus, most=MOST))


def broken_support(database: Runner, *, corpus: str) -> list[Violation]:
    """Return violations in the support of entities and relations."""
    return _violations(database.run("broken_support", corpus=corpus, most=MOST))


def broken_builds(database: Runner, *, corpus: str) -> list[Violation]:
    """Return violations in what systems have built."""
    return _violations(database.run("broken_builds", corpus=corpus, ours=sorted(TYPES), most=MOST))


def broken_vectors(database: Runner, *, corpus: str, dimensions: int) -> list[Violation]:
    """Return violations in vectors: missing ones, other dimensions, or not of unit length."""
    zero = vector([0.0] * dimensions)
    return _violations(database.run("broken_vectors", corpus=corpus, dimensions=dimensions, zero=zero, most=MOST))


def crossings(database: Runner, *, corpus: str) -> list[Violation]:
    """Return relationships that lead to another corpus."""
    return _violations(database.run("crossings", corpus=corpus, most=MOST))


def leaks(database: Runner, *, corpus: str) -> list[Violation]:
    """Return relationships and provisional entities that cross memories."""
    return _violations(database.run("leaks", corpus=corpus, most=MOST))


def orphans(database: Runner, *, corpus: str) -> list[Violation]:
    """Return nodes and relationships of a memory that can't be reached from it."""
    return _violations(database.run("orphans", corpus=corpus, most=MOST))


def broken_citations(database: Runner, *, corpus: str) -> list[Violation]:
    """Return violations in citations."""
    return _violations(database.run("broken_citations", corpus=corpus, most=MOST))


def broken_memories(
    database: Runner, *, corpus: str, memories: Sequence[str], adding: Sequence[str]
) -> list[Violation]:
    """Return violations in the points and steps of memories.

    `adding` are the memories whose merges keep the parts.
    """
    rows = database.run("broken_memories", corpus=corpus, memories=list(memories), adding=list(adding), most=MOST)
    return _violations(rows)


def memory_page(database: Runner, *, corpus: str, after: str) -> list[MemoryRow]:
    """Return the next memories by uid."""
    return [MemoryRow(**row) for row in database.run("memory_page", corpus=corpus, after=after, most=MEMORIES)]


def entity_page(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the uids of the next entities, provisional ones included."""
    return _uids(database.run("entity_page", corpus=corpus, after=after, most=most))


def relation_page(database: Runner, *, corpus: str, after: str, most: int) -> list[str]:
    """Return the uids of the next relations, those of memories included."""
    return _uids(database.run("relation_page", corpus=corpus, after=after, most=most))


def stored_entities(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return memory, name, type and description of entities by uid.

    `embedded` says whether the index must contain the entity.
    """
    return _by_uid(database.run("stored_entities", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_relations(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return memory, description, keywords, weight and `embedded` of relations by uid."""
    return _by_uid(database.run("stored_relations", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_chunks(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return status, extraction, messages (JSON) and `embedded` of chunks by uid, and texts of conversations."""
    return _by_uid(database.run("stored_chunks", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_built(database: Runner, *, corpus: str, uids: Sequence[str], dimensions: int) -> dict[str, Row]:
    """Return system, kind, key, layer_key, labels and `embedded` of built rows by uid."""
    return _by_uid(database.run("stored_built", corpus=corpus, uids=list(uids), dimensions=dimensions))


def stored_units(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, Row]:
    """Return system, stage and key of units by uid."""
    return _by_uid(database.run("stored_units", corpus=corpus, uids=list(uids)))


def stored_points(database: Runner, *, corpus: str, memories: Sequence[str], dimensions: int) -> list[str]:
    """Return the uids of the memories' points that the index must contain."""
    return _uids(database.run("stored_points", corpus=corpus, memories=list(memories), dimensions=dimensions))


def unfolded_chunks(database: Runner, *, corpus: str, named: Mapping[str, tuple[list[str], list[str]]]) -> list[str]:
    """Return the chunks that are missing from an entity or relation they contribute to.

    `named` holds the uids of both by chunk.
    """
    rows = [{"uid": uid, "entities": ends, "relations": ties} for uid, (ends, ties) in named.items()]
    return _uids(database.run("unfolded_chunks", corpus=corpus, rows=rows))


def indexed_entities(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the entities that the vector index returns."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_entities", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_relations(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the relations that the vector index returns."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_relations", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_chunks(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the chunks that the vector index returns."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_chunks", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_built(database: Runner, *, corpus: str, uids: Sequence[str], query: Any) -> set[str]:
    """Return those of the built rows that the vector index returns."""
    named, most = list(uids), len(uids)
    return set(_uids(database.run("indexed_built", corpus=corpus, uids=named, vector=vector(query), most=most)))


def indexed_points(database: Runner, *, corpus: str, memories: Sequence[str], query: Any, most: int) -> set[str]:
    """Return at most `most` points of memories that the vector index returns."""
    rows = database.run("indexed_points", corpus=corpus, memories=list(memories), vector=vector(query), most=most)
    return set(_uids(rows))


def _violations(rows: list[Row]) -> list[Violation]:
    return [Violation(invariant=row["invariant"], found=row["found"], uids=tuple(row["uids"])) for row in rows]


def _uids(rows: list[Row]) -> list[str]:
    return [str(row["uid"]) for row in rows]


def _by_uid(rows: list[Row]) -> dict[str, Row]:
    return {str(row["uid"]): row for row in rows}
