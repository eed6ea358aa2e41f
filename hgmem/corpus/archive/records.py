"""Records in their order: what an archive may hold, one after the other, and whether what it names is there."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from hgmem.corpus.archive.fields import check_plain_vector, check_vector
from hgmem.corpus.archive.kinds import (
    FOOTER,
    FORMAT,
    HEADER,
    KINDS,
    OF_BUILDS,
    OF_MEMORIES,
    VERSIONS,
    Footer,
    Header,
    parse,
)
from hgmem.corpus.archive.lines import LineError, Record
from hgmem.corpus.archive.own_names import OwnNamesCheck
from hgmem.corpus.archive.schema import SHOWN, ArchiveRecord, Reference
from hgmem.errors import UsageError
from hgmem.text.identity import build_uid, built_uid, check_corpus_name, uid, unit_uid

MOST_DIMENSIONS = 100_000
# The uids that follow from other fields, by kind.
UIDS: Mapping[str, Callable[[str, Record], str]] = {
    "Entity": lambda corpus, record: uid(corpus, "entity", record["key"]),
    "Build": lambda corpus, record: build_uid(corpus, record["system"]),
    "Unit": lambda corpus, record: unit_uid(corpus, record["system"], stage=record["stage"], key=record["key"]),
    "Built": lambda corpus, record: built_uid(corpus, record["system"], kind=record["label"], key=record["key"]),
}


class Records:
    """Checks records one after the other, keeping 16 bytes for each record with an identity."""

    def __init__(self, *, schema_version: int, own_names: OwnNamesCheck | None = None) -> None:
        self.own_names = own_names or OwnNamesCheck()
        self.counts: Counter[str] = Counter()
        self.ended = False
        self._header: Header | None = None
        self._schema_version = schema_version
        self._known: set[bytes] = set()

    @property
    def header(self) -> Header:
        """What the first line says."""
        if self._header is None:
            raise LineError("the first line is not a header")
        return self._header

    def check(self, record: Record) -> None:
        """Check the record of the next line, or raise `LineError`."""
        if self.ended:
            raise LineError("data after the last record")
        if self._header is None:
            self._header = _header(record, self._schema_version)
        elif record.get("kind") == FOOTER:
            self._end(record)
        elif missing := self.add(record):
            raise LineError(f"refers to {missing}, which no earlier line defines")

    def add(self, record: Record) -> str:
        """Add the record, or return the reference that no earlier record defines.

        Raises `LineError` if the record does not match its kind or is a duplicate.
        """
        name = str(record.get("kind"))
        kind = KINDS.get(name)
        if kind is None:
            raise LineError(f"unknown kind {name[:SHOWN]!r}")
        parse(record)
        self._check(name, record)
        if kind.identity and self._knows(name, kind.identity, record):
            raise LineError(f"duplicate {_named(((name, kind.identity),), record)}")
        for reference in (*kind.refers, *_given(kind, record)):
            if not any(self._knows(other, fields, record) for other, fields in reference):
                return _named(reference, record)
        if kind.identity:
            self._known |= {_identity(name, fields, record) for fields in (kind.identity, *kind.also_known_by)}
        self.counts[name] += 1
        return ""

    def _check(self, kind: str, record: Record) -> None:
        """Raise `LineError` unless the record agrees with the header."""
        header = self.header
        if not header.memories and (kind in OF_MEMORIES or record.get("memory")):
            raise LineError("the record belongs to a memory, but the header says that there are none")
        if kind in OF_BUILDS and header.version < VERSIONS[-1]:
            raise LineError(f"kind {kind!r} belongs to version {VERSIONS[-1]} of the format, not {header.version}")
        for field in ("embedding", "own_embedding"):
            if field in record:
                if not header.embeddings:
                    raise LineError("the record has a vector, but the header says that there are none")
                check_vector(record[field], dimensions=header.dimensions, field=field)
        if "vector" in record:
            check_plain_vector(record["vector"], field="vector")
        if kind in UIDS and record["uid"] != UIDS[kind](header.corpus, record):
            raise LineError(
                f"{kind.lower()} {record['uid']!r} does not belong to corpus {header.corpus!r} of the header"
            )
        self.own_names.check(record)

    def _knows(self, kind: str, fields: Sequence[str], record: Record) -> bool:
        return all(name in record for name in fields) and _identity(kind, fields, record) in self._known

    def _end(self, record: Record) -> None:
        counts = cast("Footer", parse(record)).counts
        if counts != dict(self.counts):
            raise LineError(f"the footer counts {str(counts)[:SHOWN]}, but the archive has {dict(self.counts)}")
        self.ended = True


def header(**values: Any) -> dict[str, Any]:
    """Return the record of the first line, without fields that are None."""
    values |= {"kind": HEADER, "format": FORMAT}
    return {name: values[name] for name in Header.model_fields if values[name] is not None}


def footer(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the last line's record."""
    return {"kind": FOOTER, "counts": dict(counts)}


def _header(record: Record, schema_version: int) -> Header:
    if record.get("kind") != HEADER or record.get("format") != FORMAT:
        raise LineError(f"not the header of an {FORMAT}: create an archive with `hgmem export`")
    if record.get("version") not in VERSIONS:
        raise LineError(
            f"format version {str(record.get('version'))[:SHOWN]!r}, but this hgmem reads "
            f"{' and '.join(map(str, VERSIONS))}: use the hgmem that wrote the archive, or a newer one"
        )
    found = cast("Header", parse(record))
    if found.schema_version != schema_version:
        raise LineError(f"schema version {found.schema_version}, but this hgmem uses {schema_version}")
    if not 0 < found.dimensions <= MOST_DIMENSIONS:
        raise LineError(f"invalid dimensions {found.dimensions}: expected 1 to {MOST_DIMENSIONS}")
    try:
        check_corpus_name(found.corpus)
    except UsageError as error:
        raise LineError(str(error)) from None
    return found


def _given(kind: type[ArchiveRecord], record: Record) -> list[Reference]:
    """Return the optional references that the record makes."""
    return [reference for reference in kind.may_refer if any(set(fields) <= record.keys() for _, fields in reference)]


def _identity(kind: str, fields: Sequence[str], record: Record) -> bytes:
    values = [kind, *(record[name] for name in fields)]
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def _named(reference: Reference, record: Record) -> str:
    kind, fields = next((each for each in reference if all(name in record for name in each[1])), reference[0])
    return f"{kind} {'/'.join(str(record.get(name))[:SHOWN] for name in fields)!r}"
