"""Records in their order: what an archive may hold, one after the other, and whether what it names is there."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.archive.fields import SHOWN, check_fields, check_vector
from hgmem.archive.kinds import FOOTER, FORMAT, HEADER, HEADER_FIELDS, KINDS, OF_MEMORIES, VERSION, Kind, Reference
from hgmem.archive.lines import LineError, Record
from hgmem.errors import UsageError
from hgmem.identity import check_corpus_name, uid

MOST_DIMENSIONS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: which corpus it is, what its vectors are, and whether they and the memories are in the file."""

    hgmem: str
    corpus: str
    embedding_model: str
    dimensions: int
    schema_version: int
    settings: str
    created_at: str
    embeddings: bool
    memories: bool
    imported: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the first line's record."""
        values = {name: getattr(self, name, None) for name in HEADER_FIELDS}
        values |= {"format": FORMAT, "version": VERSION}
        return {"kind": HEADER, **{name: value for name, value in values.items() if value is not None}}


class Records:
    """Checks records one after the other; keeps 16 bytes of each thing that has an identity."""

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
        """Take in the next line's record; `LineError` says what is wrong with it."""
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
        kind = KINDS.get(str(record.get("kind")))
        if kind is None:
            raise LineError(f"there are no records of kind {str(record.get('kind'))[:SHOWN]!r}")
        self._check(kind, record)
        for reference in kind.refers:
            if not any(self._knows(name, fields, record) for name, fields in reference):
                return _named(reference, record)
        if kind.identity:
            self._known.add(_identity(kind.name, kind.identity, record))
        self.counts[kind.name] += 1
        return ""

    def _check(self, kind: Kind, record: Record) -> None:
        header = self.header
        check_fields(record, kind.fields)
        if not header.memories and (kind.name in OF_MEMORIES or record.get("memory")):
            raise LineError("it belongs to a memory, and the archive says that it holds none")
        if kind.needs and sum(name in record for name in kind.needs) != 1:
            raise LineError(f"it has not just one of {' and '.join(map(repr, kind.needs))}")
        if "embedding" in record:
            if not header.embeddings:
                raise LineError("it has a vector, and the archive says that it holds none")
            check_vector(record["embedding"], dimensions=header.dimensions)
        if kind.name == "Entity" and record["uid"] != uid(header.corpus, "entity", record["key"]):
            raise LineError(f"entity {record['uid']!r} is none of corpus {header.corpus!r}, which the archive names")
        if kind.identity and self._knows(kind.name, kind.identity, record):
            raise LineError(f"{_named(((kind.name, kind.identity),), record)} is there twice")

    def _knows(self, kind: str, fields: Sequence[str], record: Record) -> bool:
        return all(name in record for name in fields) and _identity(kind, fields, record) in self._known

    def _end(self, record: Record) -> None:
        check_fields({**record, "counts": "{}"}, {"counts": "object"})
        counts = record.get("counts")
        if counts != dict(self.counts):
            raise LineError(f"it counts {str(counts)[:SHOWN]}, and there were {dict(self.counts)}")
        self.ended = True


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
    check_fields(record, HEADER_FIELDS)
    if record["schema_version"] != schema_version:
        raise LineError(f"its schema is version {record['schema_version']}, this hgmem writes {schema_version}")
    if not 0 < record["dimensions"] <= MOST_DIMENSIONS:
        raise LineError(f"it names {record['dimensions']} dimensions: there are 1 to {MOST_DIMENSIONS}")
    try:
        check_corpus_name(record["corpus"])
    except UsageError as error:
        raise LineError(str(error)) from None
    return Header(**{name: value for name, value in record.items() if name not in ("kind", "format", "version")})


def _identity(kind: str, fields: Sequence[str], record: Record) -> bytes:
    values = [kind, *(record[name] for name in fields)]
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def _named(reference: Reference, record: Record) -> str:
    kind, fields = next((each for each in reference if all(name in record for name in each[1])), reference[0])
    return f"{kind} {'/'.join(str(record.get(name))[:SHOWN] for name in fields)!r}"
