"""Records in their order: what an archive may hold, one after the other, and whether what it names is there."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hgmem.corpus.archive.fields import check_vector
from hgmem.corpus.archive.kinds import FOOTER, FORMAT, HEADER, KINDS, OF_MEMORIES, VERSION, Footer, Header, parse
from hgmem.corpus.archive.lines import LineError, Record
from hgmem.corpus.archive.schema import SHOWN, Reference
from hgmem.errors import UsageError
from hgmem.text.identity import check_corpus_name, uid

MOST_DIMENSIONS = 100_000


class Records:
    """Checks records one after the other, keeping 16 bytes for each record with an identity."""

    def __init__(self, *, schema_version: int) -> None:
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
        for reference in kind.refers:
            if not any(self._knows(other, fields, record) for other, fields in reference):
                return _named(reference, record)
        if kind.identity:
            self._known.add(_identity(name, kind.identity, record))
        self.counts[name] += 1
        return ""

    def _check(self, kind: str, record: Record) -> None:
        """Raise `LineError` unless the record agrees with the header."""
        header = self.header
        if not header.memories and (kind in OF_MEMORIES or record.get("memory")):
            raise LineError("the record belongs to a memory, but the header says that there are none")
        if "embedding" in record:
            if not header.embeddings:
                raise LineError("the record has a vector, but the header says that there are none")
            check_vector(record["embedding"], dimensions=header.dimensions)
        if kind == "Entity" and record["uid"] != uid(header.corpus, "entity", record["key"]):
            raise LineError(f"entity {record['uid']!r} does not belong to corpus {header.corpus!r} of the header")

    def _knows(self, kind: str, fields: Sequence[str], record: Record) -> bool:
        return all(name in record for name in fields) and _identity(kind, fields, record) in self._known

    def _end(self, record: Record) -> None:
        counts = cast("Footer", parse(record)).counts
        if counts != dict(self.counts):
            raise LineError(f"the footer counts {str(counts)[:SHOWN]}, but the archive has {dict(self.counts)}")
        self.ended = True


def header(**values: Any) -> dict[str, Any]:
    """Return the record of the first line, without fields that are None."""
    values |= {"kind": HEADER, "format": FORMAT, "version": VERSION}
    return {name: values[name] for name in Header.model_fields if values[name] is not None}


def footer(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the last line's record."""
    return {"kind": FOOTER, "counts": dict(counts)}


def _header(record: Record, schema_version: int) -> Header:
    if record.get("kind") != HEADER or record.get("format") != FORMAT:
        raise LineError(f"not the header of an {FORMAT}: create an archive with `hgmem export`")
    if record.get("version") != VERSION:
        raise LineError(
            f"format version {str(record.get('version'))[:SHOWN]!r}, but this hgmem reads {VERSION}: "
            "use the hgmem that wrote the archive, or a newer one"
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


def _identity(kind: str, fields: Sequence[str], record: Record) -> bytes:
    values = [kind, *(record[name] for name in fields)]
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def _named(reference: Reference, record: Record) -> str:
    kind, fields = next((each for each in reference if all(name in record for name in each[1])), reference[0])
    return f"{kind} {'/'.join(str(record.get(name))[:SHOWN] for name in fields)!r}"
