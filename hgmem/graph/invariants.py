"""Invariants of systems' builds, and typed wrappers for `cypher/invariants.cypher`, which reads violations of ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.values import Runner, uids_of, vector

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


def violations(database: Runner, name: str, /, **parameters: Any) -> list[Violation]:
    """Return the violations that a statement finds, each with its first uids."""
    return [
        Violation(invariant=row["invariant"], found=row["found"], uids=tuple(row["uids"]))
        for row in database.run(name, **parameters, most=MOST)
    ]


def memory_page(database: Runner, *, corpus: str, after: str) -> list[MemoryRow]:
    """Return the next memories by uid."""
    return [MemoryRow(**row) for row in database.run("memory_page", corpus=corpus, after=after, most=MEMORIES)]


def unfolded_chunks(database: Runner, *, corpus: str, named: Mapping[str, tuple[list[str], list[str]]]) -> list[str]:
    """Return the chunks that are missing from an entity or relation they contribute to.

    `named` holds the uids of both by chunk.
    """
    rows = [{"uid": uid, "entities": ends, "relations": ties} for uid, (ends, ties) in named.items()]
    return uids_of(database, "unfolded_chunks", corpus=corpus, rows=rows)


def indexed(database: Runner, name: str, /, *, dimensions: int, most: int, **parameters: Any) -> set[str]:
    """Return those of the uids that a vector index returns.

    Any unit vector will do for a query that returns everything: it is the first axis of the corpus's `dimensions`.
    """
    axis = vector([1.0] + [0.0] * (dimensions - 1))
    return set(uids_of(database, name, **parameters, vector=axis, most=most))
