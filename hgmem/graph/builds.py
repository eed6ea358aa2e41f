"""Typed wrappers for `cypher/builds.cypher`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row, leased
from hgmem.graph.values import Runner, loaded_messages
from hgmem.text.identity import build_uid
from hgmem.values.graph_elements import Chunk

# Statuses of a build. An incomplete one went through all stages, with units that failed; an unfinished one did not.
BUILDING, READY, STALE, INCOMPLETE, UNFINISHED = "building", "ready", "stale", "incomplete", "unfinished"
# What indexing, adding and deleting change in a corpus after a build was made.
ADDED, CHANGED, DELETED = "documents were added", "documents were changed", "texts were deleted"
EXTRACTED, EXTENDED = "entities were extracted", "entities were added"
APPENDED = "messages were appended"  # to conversations: what was built of the earlier ones stays


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRow:
    """A build with its lease.

    `settings` is JSON. `change` says what has changed in the corpus since it was made, `silent` is the age of the
    lease's last heartbeat in seconds. `finished_at` is None for one that never went through all stages.
    """

    uid: str
    system: str
    status: str
    settings: str
    model: str
    change: str | None
    created_at: str
    finished_at: str | None
    run: str | None
    silent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    """A unit as it is stored. `digest` is None for one that a deletion has emptied, `output` is JSON."""

    uid: str
    key: str
    digest: str | None
    status: str
    output: str | None
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLease:
    """A run that makes or deletes the build of a system."""

    corpus: str
    system: str
    run: str

    @property
    def build(self) -> str:
        """The uid of the build."""
        return build_uid(self.corpus, self.system)


def lease_build(database: Runner, lease: BuildLease, *, timeout: float, properties: Mapping[str, str]) -> bool | None:
    """Return whether the build, which the run has the lease on now, is as these properties and the corpus make it.

    None if another run has it. The properties: `settings` (JSON), `model`, and a hash of what its `stages` depend on.
    """
    rows = database.run(
        "lease_build",
        corpus=lease.corpus,
        system=lease.system,
        uid=lease.build,
        run=lease.run,
        timeout=timeout,
        properties=dict(properties),
    )
    return rows[0]["unchanged"] if rows else None


def write_held(database: Runner, name: str, lease: BuildLease, /, **more: Any) -> None:
    """Run a write that checks the lease on the build, or raise `ConflictError` if it is lost."""
    rows = database.run(name, corpus=lease.corpus, uid=lease.build, run=lease.run, **more)
    leased(rows, what=f"the build {lease.system!r} in corpus {lease.corpus!r}")


def renew_build(database: Runner, lease: BuildLease) -> None:
    """Renew the lease, or raise `ConflictError` if it is lost."""
    write_held(database, "renew_build", lease)


def release_build(database: Runner, lease: BuildLease, *, status: str) -> None:
    """Release the lease, and set the status: `READY` or `INCOMPLETE` after all stages, else `UNFINISHED`."""
    write_held(database, "release_build", lease, status=status, finished=status != UNFINISHED)


def mark_builds(database: Runner, *, corpus: str, change: str) -> None:
    """Say of every build of the corpus that the corpus has changed since, and how.

    `APPENDED` replaces no other change.
    """
    database.run("mark_builds", corpus=corpus, change=change, replaces=change != APPENDED)


def find_builds(database: Runner, *, corpus: str) -> list[tuple[BuildRow, dict[str, int], dict[str, int]]]:
    """Return the builds of a corpus by system, each with its units by status and its rows by kind."""
    return [
        (BuildRow(**row), _counts(units), _counts(built))
        for row, units, built in (
            (row, row.pop("units"), row.pop("rows")) for row in database.run("find_builds", corpus=corpus)
        )
    ]


def find_build(database: Runner, *, corpus: str, system: str) -> BuildRow | None:
    """Return a system's build, or None."""
    rows = database.run("find_build", corpus=corpus, uid=build_uid(corpus, system))
    return BuildRow(**rows[0]) if rows else None


def being_indexed(database: Runner, *, corpus: str) -> str:
    """Return the title or uid of a document that is being indexed, or was left unfinished, else an empty text."""
    rows = database.run("being_indexed", corpus=corpus)
    return (rows[0]["title"] or rows[0]["uid"]) if rows else ""


def chunks_to_build(database: Runner, *, corpus: str) -> list[Chunk]:
    """Return all chunks by document title, document and position."""
    return [
        Chunk(**{**row, "messages": loaded_messages(row["messages"])})
        for row in database.run("chunks_to_build", corpus=corpus)
    ]


def built_rows(database: Runner, *, corpus: str, system: str, kind: str, vectors: bool) -> list[Row]:
    """Return the rows of one kind by key, all properties of each, with their vectors if asked."""
    rows = database.run("built_rows", corpus=corpus, system=system, kind=kind, vectors=vectors)
    return [row["row"] for row in rows]


def units_of_stage(database: Runner, *, corpus: str, system: str, stage: str) -> dict[str, StoredUnit]:
    """Return the units of a stage by key."""
    rows = database.run("units_of_stage", corpus=corpus, build=build_uid(corpus, system), stage=stage)
    return {row["key"]: StoredUnit(**row) for row in rows}


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    return {row["name"]: row["number"] for row in sorted(rows, key=lambda row: str(row["name"]))}
