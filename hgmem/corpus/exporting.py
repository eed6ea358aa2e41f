"""Exporting: a corpus into an archive, a page at a time, so that memory holds no more than that.

Others may write meanwhile. Documents are read before their chunks, chunks before entities and these before relations:
what is marked done in the archive has all that came of it. What names something that came too late is left out, and
counted; so is a memory that is being worked on.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any, TypeAlias

from hgmem.corpus.archive.field_types import pack
from hgmem.corpus.archive.files import Bounds, writing
from hgmem.corpus.archive.lines import LineError, Record
from hgmem.corpus.archive.records import COUNTED, OwnNamesCheck, Records, footer, header, nothing_installed
from hgmem.corpus.paging import (
    CHUNKS,
    DECISIONS,
    DOCUMENTS,
    ENTITIES,
    MEMORIES,
    RELATIONS,
    UNITS,
    Listed,
    built_rows,
    pages,
)
from hgmem.errors import ConflictError, GraphError, UsageError
from hgmem.graph.builds import BUILDING, UNFINISHED
from hgmem.graph.corpus import SCHEMA_VERSION, CorpusRow, count_corpus, leased_builds
from hgmem.graph.database import Row
from hgmem.graph.record_fields import VECTORS
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.schema import OURS
from hgmem.services import Services, settled_corpus
from hgmem.values.built import OF_RELATIONSHIPS, OWN_PROPERTIES, Installed, is_property, is_property_name, is_scalar
from hgmem.values.records import INTERRUPTED, RUNNING
from hgmem.values.reports import ArchiveReport, CountReport

Read: TypeAlias = Callable[[list[str]], Iterable[Row]]  # rows of records by the uids of a page

READ = frozenset(("unit", "replaced_vectors"))  # what the statement `read_nodes` adds to the properties of a built row
ROWS = 250  # things read at once, with their vectors
LINKED = 50  # things whose links are read at once: a few have very many
# Lists of the statement `read_memory`, in an order in which everything comes after what it names. Records of several
# types have a `kind` of their own.
MEMORY_LISTS = {
    "provisionals": "Provisional",
    "relations": "RELATES",
    "steps": "Step",
    "order": "NEXT_STEP",
    "points": "MemoryPoint",
    "of_points": "",
    "subqueries": "SubQuery",
    "of_subqueries": "",
    "answers": "Answer",
    "citations": "Citation",
    "cited": "CITES",
}


def records(services: Services, name: str, **parameters: Any) -> list[Row]:
    """Return the records that a statement reads of the corpus."""
    return [row["record"] for row in services.database.run(name, corpus=services.corpus, **parameters)]


def bounds(services: Services) -> Bounds:
    """Return how much of an archive may be read, and so written."""
    return Bounds(line=services.settings.max_archive_line_bytes, total=services.settings.max_archive_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What goes into an archive beside the corpus itself, and whether a file that exists is replaced.

    `installed` tells which kinds of rows systems have: others are left out, as no import would take them.
    """

    memories: bool = True
    embeddings: bool = True
    force: bool = False
    installed: Installed = nothing_installed


def export(
    services: Services, path: Path, *, wanted: Wanted, report: CountReport = lambda _, __: None
) -> ArchiveReport:
    """Write the corpus to the file and return a report. `report` gets the lines written and their estimated total."""
    row = settled_corpus(services)
    counts = count_corpus(services.database, corpus=row)
    total = sum((counts.documents, counts.chunks, counts.entities, counts.relations, counts.memories))
    total += counts.units + counts.built
    reader = BuildsReader(services=services, installed=cache(wanted.installed))
    with writing(path, force=wanted.force, bounds=bounds(services)) as write:
        exporter = _Exporter(services=services, write=write, builds=reader)
        exporter.put(_header(services, row, wanted))
        for _ in exporter.everything():
            report(min(exporter.things, total), total)
        write(footer(exporter.records.counts))
        _check_unchanged(services, row)
    notes = exporter.notes()
    if count_corpus(services.database, corpus=row) != counts:
        notes += ("the corpus was changed during the export: export it again when nothing writes to it",)
    return ArchiveReport(corpus=services.corpus, written=True, counts=dict(exporter.records.counts), notes=notes)


def _header(services: Services, row: CorpusRow, wanted: Wanted) -> Record:
    found = services.database.run("corpus_properties", corpus=row.corpus)
    if not found:
        raise UsageError(f"corpus {row.corpus!r} was deleted during the export: nothing to export")
    return header(
        **found[0]["properties"],
        hgmem=package_version("hgmem"),
        corpus=row.corpus,
        embeddings=wanted.embeddings,
        memories=wanted.memories,
    )


def _check_unchanged(services: Services, before: CorpusRow) -> None:
    row = settled_corpus(services)
    if (row.embedding_model, row.dimensions) != (before.embedding_model, before.dimensions):
        raise ConflictError(f"corpus {row.corpus!r} was re-embedded during the export: export it again")


@dataclass(slots=True, kw_only=True)
class BuildsReader:
    """Reads builds for an archive, and keeps what is left out."""

    services: Services
    installed: Installed
    live: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    _states: list[Row] = field(default_factory=list)

    def builds(self) -> list[Row]:
        """Return the builds. One that is being made is unfinished in the archive."""
        database, corpus = self.services.database, self.services.corpus
        self.live = leased_builds(database, corpus=corpus, timeout=self.services.settings.claim_timeout)
        self._states = self._read()
        return [{**row, "status": UNFINISHED if row["status"] == BUILDING else row["status"]} for row in self._states]

    def rows(self, found: Iterable[Row]) -> Iterator[Row]:
        """Yield stored rows as records, without those of kinds that the installed system no longer has."""
        for row in found:
            known = self.installed(row["system"])
            if row["kind"] in OURS or (known and row["kind"] not in known.kinds):
                self.foreign.add(f"rows of kind {row['kind']!r} of system {row['system']!r}")
                continue
            own = {name: row.pop(name) for name in row.keys() - OWN_PROPERTIES - READ}
            yield {**row, "label": row["kind"], "own_properties": self._kept(row["kind"], own, is_property)}

    def relationships(self, found: Iterable[Row]) -> Iterator[Row]:
        """Yield relationships of systems' own types as records, without those that others wrote."""
        for row in _in_order(found):
            known = self.installed(row["system"])
            if row["type"] in OURS or (known and row["type"] not in known.relationships):
                self.foreign.add(f"relationships of type {row['type']!r} from rows of system {row['system']!r}")
                continue
            own = {name: value for name, value in row.pop("properties").items() if name not in OF_RELATIONSHIPS}
            yield {**row, "own_properties": self._kept(row["type"], own, is_scalar)}

    def notes(self) -> list[str]:
        """Return a line for each build that was being made, and for what is left out."""
        found = (self._states, self._read())
        before, after = ({row["system"]: {**row, "heartbeat": None} for row in rows} for rows in found)
        changed = sorted(system for system in before.keys() | after.keys() if before.get(system) != after.get(system))
        return [
            *(f"the build {system!r} is being made: it is unfinished in the archive" for system in self.live),
            *(
                f"the build {system!r} changed during the export: export again when nothing writes to it"
                for system in changed
                if system not in self.live
            ),
            *(f"skipped {what}, which that system does not have" for what in sorted(self.foreign)),
        ]

    def _read(self) -> list[Row]:
        return records(self.services, "read_builds")

    def _kept(self, where: str, properties: Row, fits: Any) -> Row:
        """Return the properties that an archive can hold, sorted by name."""
        kept = {name: properties[name] for name in sorted(properties) if is_property_name(name)}
        kept = {name: value for name, value in kept.items() if fits(value)}
        self.unknown |= {f"{where}.{name}" for name in properties.keys() - kept.keys()}
        return kept


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in an order that is the same for the same relationships."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))


@dataclass(slots=True, kw_only=True)
class _Exporter:
    """One export: what is written so far, and what was left out."""

    services: Services
    write: Callable[[Record], None]
    builds: BuildsReader
    records: Records = field(default_factory=lambda: Records(schema_version=SCHEMA_VERSION, own_names=_any_number()))
    dropped: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    live: list[str] = field(default_factory=list)

    @property
    def things(self) -> int:
        """How many of what `count_corpus` counts are written."""
        return sum(self.records.counts[kind] for kind in COUNTED)

    def everything(self) -> Iterator[None]:
        """Write all records, yielding now and then."""
        yield from self._section("Document", DOCUMENTS, self._nodes("Document"))
        yield from self._section("Chunk", CHUNKS, self._nodes("Chunk"))
        yield from self._section("NEXT_CHUNK", CHUNKS, self._links("NEXT_CHUNK"))
        yield from self._section("Entity", ENTITIES, self._nodes("Entity"))
        yield from self._section("FROM_CHUNK", ENTITIES, self._links("FROM_CHUNK"), size=LINKED)
        yield from self._section("RELATES", RELATIONS, self._relations)
        yield from self._section("Decision", DECISIONS, self._nodes("Decision"))
        yield from self._builds()
        if self.records.header["memories"]:
            yield from self._memories()

    def put(self, record: Record) -> None:
        """Write a record that passes the checks of an import. Skip one that names a missing record."""
        try:
            missing = self._taken(record)
        except LineError as error:
            name = f"{record['kind']} {record.get('uid', '')}".strip()
            raise GraphError(f"corpus {self.services.corpus!r} cannot be exported: {name}: {error}") from None
        if missing:
            self.dropped[str(record["kind"])] += 1
        else:
            self.write(record)

    def notes(self) -> tuple[str, ...]:
        """Return a line for each sort of thing that is not in the archive."""
        notes = [
            f"skipped {number} {kind} that refer to later additions: export again to include them"
            for kind, number in self.dropped.items()
        ]
        notes += [f"skipped memory {memory}: it is in use; export again when its run has ended" for memory in self.live]
        notes += self.builds.notes()
        if unknown := self.unknown | self.builds.unknown:
            notes.append(f"skipped properties that hgmem did not write: {', '.join(sorted(unknown))}")
        return tuple(notes)

    def _taken(self, record: Record) -> str:
        if record["kind"] in RECORD_TYPES:
            return self.records.add(record)
        self.records.check(record)
        return ""

    def _nodes(self, label: str) -> Read:
        def read(uids: list[str]) -> list[Row]:
            wanted, embeddings = [{label: uid} for uid in uids], self.records.header["embeddings"]
            found = records(self.services, "read_nodes", rows=wanted, embeddings=embeddings)
            return [{name: value for name, value in row.items() if value is not None} for row in found]

        return read

    def _links(self, type_: str) -> Read:
        return lambda uids: records(self.services, "read_relationships", type=type_, uids=uids)

    def _relations(self, uids: list[str]) -> list[Row]:
        return records(self.services, "read_relations", uids=uids, embeddings=self.records.header["embeddings"])

    def _section(self, kind: str, listed: Listed, read: Read, *, size: int = ROWS) -> Iterator[None]:
        for uids in pages(self.services.database, listed, corpus=self.services.corpus, size=size):
            self._put_all(kind, read(uids))
            yield

    def _builds(self) -> Iterator[None]:
        reader, read_rows = self.builds, self._nodes("Built")
        listed, support = built_rows(learnt=self.records.header["memories"]), self._links("RESTS_ON")
        self._put_all("Build", reader.builds())
        yield from self._section("Unit", UNITS, self._nodes("Unit"))
        yield from self._section("Built", listed, lambda uids: reader.rows(read_rows(uids)))
        yield from self._section("RESTS_ON", UNITS, support, size=LINKED)
        yield from self._section("RESTS_ON", listed, support, size=LINKED)
        yield from self._section("EXTENDS", UNITS, self._links("EXTENDS"), size=LINKED)
        yield from self._section(
            "RELATIONSHIP",
            listed,
            lambda uids: reader.relationships(records(self.services, "read_own_relationships", uids=uids)),
            size=LINKED,
        )

    def _memories(self) -> Iterator[None]:
        database, corpus = self.services.database, self.services.corpus
        timeout, vectors = self.services.settings.claim_timeout, self.records.header["embeddings"]
        for uids in pages(database, MEMORIES, corpus=corpus, size=1):
            [memory] = uids
            for found in database.run("read_memory", corpus=corpus, memory=memory, timeout=timeout, embeddings=vectors):
                if found["live"]:
                    self.live.append(memory)
                else:
                    self._memory(memory, found)
            yield

    def _memory(self, memory: str, found: Row) -> None:
        status = found["memory"]["status"]  # a run that died left it so: nobody runs it where it is imported
        left = INTERRUPTED if status == RUNNING else status
        self._put_all("Memory", [{**found["memory"], "status": left}])
        for name, kind in MEMORY_LISTS.items():
            self._put_all(kind, ({**row, "memory": memory} for row in found[name]))

    def _put_all(self, kind: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self.put(self._record(kind or row.pop("kind"), row))

    def _record(self, kind: str, row: Row) -> Record:
        """Return a row as a record of its type: known fields alone, in the order of the format."""
        of_type = RECORD_TYPES[kind]
        given = {name: value for name, value in row.items() if value is not None}
        self.unknown |= {f"{kind}.{name}" for name in given.keys() - of_type.names}
        kept: dict[str, Any] = {each.name: given[each.name] for each in of_type.archived if each.name in given}
        for each in of_type.archived:
            if each.type in VECTORS and each.name in kept:
                kept[each.name] = pack(kept[each.name])
        return {"kind": kind, **kept}


def _any_number() -> OwnNamesCheck:
    """Return a check without a limit of names: an import has one only for systems that are not installed."""
    return OwnNamesCheck(most=sys.maxsize)
