"""Importing an archive: read once to check all of it, then once more to write it, whole or not at all."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO

from hgmem.corpus.archive.field_types import unpack
from hgmem.corpus.archive.files import Line, Reader, opened
from hgmem.corpus.archive.lines import Record
from hgmem.corpus.archive.records import COUNTED, nothing_installed
from hgmem.corpus.exporting import bounds
from hgmem.corpus.guarded_writes import GuardedWriter
from hgmem.corpus.importing import IMPORTING, importing, refuse_contents
from hgmem.corpus.paging import filled
from hgmem.corpus.reembedding import fill
from hgmem.errors import DocumentError, UsageError
from hgmem.graph import restoring
from hgmem.graph.builds import find_builds, mark_builds
from hgmem.graph.corpus import SCHEMA_VERSION, CorpusRow, count_corpus, find_corpus, write_leased
from hgmem.graph.database import Row
from hgmem.graph.record_fields import VECTORS
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.resolution import settle_all
from hgmem.graph.values import Runner
from hgmem.services import Services, settled_corpus
from hgmem.text.language import counted
from hgmem.values.built import Installed
from hgmem.values.reports import ArchiveReport, CountReport

ROWS = 500  # of one kind, written together
BYTES = 8_000_000  # or fewer, of so many bytes together


@dataclass(frozen=True, slots=True, kw_only=True)
class Systems:
    """What an import knows of systems: the names of installed ones, and how their vectors are made again."""

    installed: Installed = nothing_installed
    renew_vectors: Callable[[Services, GuardedWriter], None] = lambda _, __: None


def import_archive(
    services: Services,
    path: Path,
    *,
    corpus: str | None = None,
    systems: Systems = Systems(),
    report: CountReport = lambda _, __: None,
) -> ArchiveReport:
    """Return what the archive holds, written into the corpus that it names, which must be new or empty.

    That is `corpus`, if it is given. The same archive again writes nothing. `report` hears how many records are
    written, of how many.
    """
    with opened(path) as raw:
        checked = _read(services, raw, systems)
        for _ in checked.lines():
            pass
        header, counts = checked.records.header, dict(checked.records.counts)
        if corpus not in (None, header["corpus"]):
            raise UsageError(f"the archive is of corpus {header['corpus']!r}, not {corpus!r}: import it there")
        into = replace(services, corpus=header["corpus"])
        written = _needed(into, checked)
        if written:
            _Import(into, raw, checked, systems).write(report)
    return ArchiveReport(
        corpus=header["corpus"], written=written, counts=counts, notes=_kept(checked) if written else ()
    )


def _read(services: Services, raw: IO[bytes], systems: Systems) -> Reader:
    return Reader(raw, bounds=bounds(services), schema_version=SCHEMA_VERSION, installed=systems.installed)


def _kept(checked: Reader) -> tuple[str, ...]:
    return tuple(
        f"system {system!r} is not installed: {counted(rows, 'row')} that it has built {'is' if rows == 1 else 'are'} "
        "imported and kept"
        for system, rows in sorted(checked.records.own_names.kept.items())
        if rows
    )


def _needed(services: Services, checked: Reader) -> bool:
    """Return whether the archive must be written, or raise if the corpus holds different data."""
    row = find_corpus(services.database, corpus=services.corpus)
    if row is None or row.status == IMPORTING:
        return True
    settled_corpus(services)
    if row.archive == checked.digest:
        _refuse_lost(services, row, checked)
        return False
    refuse_contents(
        services, row, remedy="an archive can only be imported under its own corpus name, so delete that corpus first"
    )
    return True


def _refuse_lost(services: Services, row: CorpusRow, checked: Reader) -> None:
    """Refuse a corpus that has lost something since it was imported: nothing would bring that back."""
    counts = count_corpus(services.database, corpus=row)
    builds = len(find_builds(services.database, corpus=row.corpus))
    held = {"Document": counts.documents, "Chunk": counts.chunks, "Memory": counts.memories, "Build": builds}
    for kind, number in held.items():
        if number < (wanted := checked.records.counts[kind]):
            raise UsageError(
                f"corpus {row.corpus!r} was imported from this archive but has lost records since ({number} of "
                f"{wanted} of kind {kind!r} are left): delete the corpus, then import it again"
            )


@dataclass(frozen=True, slots=True)
class _Import:
    """One import of a file that has been checked."""

    services: Services
    raw: IO[bytes]
    checked: Reader
    systems: Systems

    def write(self, report: CountReport) -> None:
        """Write all records, and compute the vectors that the file lacks."""
        services, header = self.services, self.checked.records.header
        embedder = (header["embedding_model"], header["dimensions"])
        if not header["embeddings"]:
            embedder = (services.embedder.name, services.embedder.dimensions)

        def finish(database: Runner, run: str) -> None:
            properties, digest = _properties(header), self.checked.digest
            write_leased(
                database, "finish_restoring", corpus=services.corpus, run=run, properties=properties, archive=digest
            )

        with importing(services, embedder=embedder, finish=finish) as held:
            self._records(held, report)
            if not header["embeddings"]:
                self._vectors(held)
            settle_all(held, corpus=services.corpus)

    def _records(self, held: GuardedWriter, report: CountReport) -> None:
        done, total = 0, sum(self.checked.records.counts[name] for name in COUNTED)
        again = _read(self.services, self.raw, self.systems)
        report(done, total)
        for name, rows in _batches(again.lines()):
            restoring.restore(held, corpus=self.services.corpus, name=name, rows=rows)
            done += len(rows) if name in COUNTED else 0
            report(done, total)
        if again.digest != self.checked.digest:
            raise DocumentError(f"{self.raw.name!r} changed while it was being read: import it again")

    def _vectors(self, held: GuardedWriter) -> None:
        services, header = self.services, self.checked.records.header
        fill(services, held)
        held.run("unmake_given_vectors", corpus=services.corpus)
        if (header["embedding_model"], header["dimensions"]) != (services.embedder.name, services.embedder.dimensions):
            mark_builds(held, corpus=services.corpus, change="the corpus has another embedder")
            self.systems.renew_vectors(services, held)


def _properties(header: Record) -> Row:
    return {name: header.get(name) for name in ("settings", "schema_version", "imported", "language", "created_at")}


def _batches(lines: Iterable[Line]) -> Iterator[tuple[str, list[Row]]]:
    """Yield records to write together, all of one type, with the type's name."""
    for name, some in groupby(lines, key=lambda line: str(line.record["kind"])):
        if name in RECORD_TYPES:  # the first line and the last have others
            for batch in filled(some, size=ROWS, most=BYTES, weight=lambda line: line.length):
                yield name, [_unpacked(line.record) for line in batch]


def _unpacked(record: Row) -> Row:
    """Return a record with its vectors as arrays."""
    vectors = {
        field.name: unpack(record[field.name])
        for field in RECORD_TYPES[record["kind"]].archived
        if field.type in VECTORS and field.name in record
    }
    return {**record, **vectors}
