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
            raise LineError("it is no header, which comes first")
        return self._header

    def check(self, record: Record) -> None:
        """Check the record of the next line, or raise `LineError`."""
        if self.ended:
            raise LineError("there is something after the archive's last line")
        if self._header is None:
            self._header = _header(record, self._schema_version)
        elif record.get("kind") == FOOTER:
            self._end(record)
        elif missing := self.add(record):
            raise LineError(f"it names {missing}, which did not come before it")

    def add(self, record: Record) -> str:
        """Return what the record names that did not come before it, or nothing once it is taken in.

        `LineError` where it is not what its kind says, or is there already.
        """
        name = str(record.get("kind"))
        kind = KINDS.get(name)
        if kind is None:
            raise LineError(f"there are no records of kind {name[:SHOWN]!r}")
        parse(record)
        self._check(name, record)
        if kind.identity and self._knows(name, kind.identity, record):
            raise LineError(f"{_named(((name, kind.identity),), record)} is there twice")
        for reference in kind.refers:
            if not any(self._knows(other, fields, record) for other, fields in reference):
                return _named(reference, record)
        if kind.identity:
            self._known.add(_identity(name, kind.identity, record))
        self.counts[name] += 1
        return ""

    def _check(self, kind: str, record: Record) -> None:
        """Raise `LineError` unless the record is one that the header lets expect."""
        header = self.header
        if not header.memories and (kind in OF_MEMORIES or record.get("memory")):
            raise LineError("it belongs to a memory, and the archive says that it holds none")
        if "embedding" in record:
            if not header.embeddings:
                raise LineError("it has a vector, and the archive says that it holds none")
            check_vector(record["embedding"], dimensions=header.dimensions)
        if kind == "Entity" and record["uid"] != uid(header.corpus, "entity", record["key"]):
            raise LineError(f"entity {record['uid']!r} is none of corpus {header.corpus!r}, which the archive names")

    def _knows(self, kind: str, fields: Sequence[str], record: Record) -> bool:
        return all(name in record for name in fields) and _identity(kind, fields, record) in self._known

    def _end(self, record: Record) -> None:
        counts = cast("Footer", parse(record)).counts
        if counts != dict(self.counts):
            raise LineError(f"it counts {str(counts)[:SHOWN]}, and there were {dict(self.counts)}")
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
        raise LineError(f"it is no header of an {FORMAT}: make one with `hgmem export`")
    if record.get("version") != VERSION:
        raise LineError(
            f"it is of format version {str(record.get('version'))[:SHOWN]!r}, this hgmem reads {VERSION}: "
            "use the hgmem that wrote it, or a newer one"
        )
    found = cast("Header", parse(record))
    if found.schema_version != schema_version:
        raise LineError(f"its schema is version {found.schema_version}, this hgmem writes {schema_version}")
    if not 0 < found.dimensions <= MOST_DIMENSIONS:
        raise LineError(f"it names {found.dimensions} dimensions: there are 1 to {MOST_DIMENSIONS}")
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
