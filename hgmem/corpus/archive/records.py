"""Records in their order: what an archive may hold, one after the other, and whether what it names is there.

The first line is a header, the last a footer. Between them stand the records of `hgmem/graph/record_types.py`. What
says where a thing belongs has no record of its own: a chunk's `document` is FROM_DOCUMENT, the `memory` of a step and
of a point is HAS_STEP and HAS_POINT, and so on.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from hgmem.corpus.archive.field_types import TYPES, check_plain_vector, check_vector
from hgmem.corpus.archive.lines import LineError, Record
from hgmem.errors import UsageError
from hgmem.graph.record_fields import Field, RecordType, Reference
from hgmem.graph.record_types import OF_MEMORIES, RECORD_TYPES
from hgmem.graph.schema import OURS
from hgmem.text.identity import build_uid, built_uid, check_corpus_name, decision_uid, uid, unit_uid
from hgmem.values.built import Installed

FORMAT = "hgmem-archive"
VERSION = 7
COUNTED = ("Document", "Chunk", "Entity", "RELATES", "Unit", "Built", "Memory")  # that progress and corpora count
HEADER = RecordType(
    name="archive",
    about="Which corpus it is, what its vectors are, and whether they and the memories are in the file.",
    fields=(
        Field(name="format", type="text", meaning=f"`{FORMAT}`"),
        Field(name="version", type="integer", meaning="version of the format"),
        Field(name="hgmem", type="text", meaning="version of hgmem"),
        Field(name="corpus", type="text", meaning="name of the corpus"),
        Field(name="embedding_model", type="text", meaning="embedder of the vectors"),
        Field(name="dimensions", type="integer", meaning="their length"),
        Field(name="schema_version", type="integer", meaning="version of the graph's schema"),
        Field(name="settings", type="object", meaning="settings of the corpus"),
        Field(name="created_at", type="time", meaning="creation time of the corpus"),
        Field(name="imported", type="text", meaning="origin of a pre-built graph", optional=True),
        Field(name="language", type="text", meaning="language of the documents, two letters", optional=True),
        Field(name="embeddings", type="boolean", meaning="whether vectors are in the file"),
        Field(name="memories", type="boolean", meaning="whether memories are in the file"),
    ),
)
FOOTER = RecordType(
    name="end",
    about="How many records of each type there are.",
    fields=(Field(name="counts", type="counts", meaning="numbers of records, by type"),),
)
ARCHIVED = {name: each for name, each in RECORD_TYPES.items() if not each.derived}
LINES = {each.name: each for each in (HEADER, *ARCHIVED.values(), FOOTER)}

MOST_DIMENSIONS = 100_000
MOST_NAMES = 50  # labels and relationship types of systems that are not installed
MOST_PROPERTIES = 1_000  # names of systems' properties
SHOWN = 80  # characters of a value in an error
# The uids that follow from other fields, by type.
UIDS: Mapping[str, Callable[[str, Record], str]] = {
    "Entity": lambda corpus, record: uid(corpus, "entity", record["key"]),
    "Decision": lambda corpus, record: decision_uid(corpus, (record["a"], record["b"]), record["by"]),
    "Build": lambda corpus, record: build_uid(corpus, record["system"]),
    "Unit": lambda corpus, record: unit_uid(corpus, record["system"], stage=record["stage"], key=record["key"]),
    "Built": lambda corpus, record: built_uid(corpus, record["system"], kind=record["label"], key=record["key"]),
}


def _checker(line: RecordType) -> type[BaseModel]:
    """Return what checks the fields of such a line."""
    fields: dict[str, Any] = {
        field.name: (TYPES[field.type] | None, None) if field.optional else (TYPES[field.type], ...)
        for field in line.archived
    }
    strict = ConfigDict(strict=True, extra="forbid")
    return create_model(line.name, __config__=strict, kind=(str, ...), **fields)


_CHECKERS = {name: _checker(line) for name, line in LINES.items()}


def nothing_installed(_: str) -> None:
    """Return None: no system is installed."""


class OwnNamesCheck:
    """Checks the names that records give to rows, relationships and properties of systems.

    Those of an installed system are in its spec. There is a limit for the number of others.
    """

    def __init__(self, installed: Installed = nothing_installed, *, most: int = MOST_NAMES) -> None:
        self.kept: Counter[str] = Counter()
        """Rows of systems that are not installed, by system."""
        self._installed = cache(installed)
        self._most = most
        self._names: set[tuple[str, str]] = set()
        self._properties: set[str] = set()

    def check(self, record: Record) -> None:
        """Raise `LineError` for a name that a system may not use."""
        if record["kind"] == "Built":
            self._check_name(record["system"], "label", record["label"])
            self.kept[record["system"]] += self._installed(record["system"]) is None
        elif record["kind"] == "RELATIONSHIP":
            self._check_name(record["system"], "relationship type", record["type"])
        else:
            return
        self._properties |= record["own_properties"].keys()
        if len(self._properties) > MOST_PROPERTIES:
            raise LineError(f"systems have more than {MOST_PROPERTIES:,} different properties")

    def _check_name(self, system: str, what: str, name: str) -> None:
        if name in OURS:
            raise LineError(f"hgmem uses the {what} {name!r} itself")
        known = self._installed(system)
        if known is None:
            self._names.add((what, name))
            if len(self._names) > self._most:
                raise LineError(f"systems that are not installed have more than {self._most} labels and types")
        elif name not in (known.kinds if what == "label" else known.relationships):
            raise LineError(
                f"system {system!r} has no {what} {name!r}: install the version of its package that wrote the archive, "
                "or uninstall it"
            )


class Records:
    """Checks records one after the other, keeping 16 bytes for each record with an identity."""

    def __init__(self, *, schema_version: int, own_names: OwnNamesCheck | None = None) -> None:
        self.own_names = own_names or OwnNamesCheck()
        self.counts: Counter[str] = Counter()
        self.ended = False
        self._header: Record | None = None
        self._schema_version = schema_version
        self._known: set[bytes] = set()

    @property
    def header(self) -> Record:
        """The first line."""
        if self._header is None:
            raise LineError("the first line is not a header")
        return self._header

    def check(self, record: Record) -> None:
        """Check the record of the next line, or raise `LineError`."""
        if self.ended:
            raise LineError("data after the last record")
        if self._header is None:
            _check_header(record, self._schema_version)
            self._header = record
        elif record.get("kind") == FOOTER.name:
            self._end(record)
        elif missing := self.add(record):
            raise LineError(f"refers to {missing}, which no earlier line defines")

    def add(self, record: Record) -> str:
        """Add the record, or return the reference that no earlier record defines.

        Raises `LineError` if the record does not match its type or is a duplicate.
        """
        name = str(record.get("kind"))
        of_type = ARCHIVED.get(name)
        if of_type is None:
            raise LineError(f"unknown kind {name[:SHOWN]!r}")
        _check_fields(of_type, record)
        self._check(of_type, record)
        if of_type.identity and self._knows(name, of_type.identity, record):
            raise LineError(f"duplicate {_named(((name, of_type.identity),), record)}")
        for reference in of_type.references:
            given = [(other, fields) for other, fields in reference if record.keys() >= set(fields)]
            if given and not any(self._knows(other, fields, record) for other, fields in given):
                return _named(reference, record)
        if of_type.identity:
            self._known |= {_identity(name, fields, record) for fields in (of_type.identity, *of_type.also_known_by)}
        self.counts[name] += 1
        return ""

    def _check(self, of_type: RecordType, record: Record) -> None:
        """Raise `LineError` unless the record agrees with the header."""
        header, name = self.header, of_type.name
        if not header["memories"] and (name in OF_MEMORIES or record.get("memory")):
            raise LineError("the record belongs to a memory, but the header says that there are none")
        for field in of_type.archived:
            if field.type == "vector" and field.name in record:
                if not header["embeddings"]:
                    raise LineError("the record has a vector, but the header says that there are none")
                check_vector(record[field.name], dimensions=header["dimensions"], field=field.name)
            elif field.type == "vector of any length" and field.name in record:
                check_plain_vector(record[field.name], field=field.name)
        if name in UIDS and record["uid"] != UIDS[name](header["corpus"], record):
            raise LineError(
                f"{name.lower()} {record['uid']!r} does not belong to corpus {header['corpus']!r} of the header"
            )
        self.own_names.check(record)

    def _knows(self, kind: str, fields: Sequence[str], record: Record) -> bool:
        return _identity(kind, fields, record) in self._known

    def _end(self, record: Record) -> None:
        _check_fields(FOOTER, record)
        if record["counts"] != dict(self.counts):
            raise LineError(
                f"the footer counts {str(record['counts'])[:SHOWN]}, but the archive has {dict(self.counts)}"
            )
        self.ended = True


def header(**values: Any) -> dict[str, Any]:
    """Return the record of the first line, without fields that are None."""
    values |= {"format": FORMAT, "version": VERSION}
    named = {field.name: values[field.name] for field in HEADER.fields}
    return {"kind": HEADER.name} | {name: value for name, value in named.items() if value is not None}


def footer(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the last line's record."""
    return {"kind": FOOTER.name, "counts": dict(counts)}


def _check_header(record: Record, schema_version: int) -> None:
    if record.get("kind") != HEADER.name or record.get("format") != FORMAT:
        raise LineError(f"not the header of an {FORMAT}: create an archive with `hgmem export`")
    if record.get("version") != VERSION:
        raise LineError(
            f"format version {str(record.get('version'))[:SHOWN]!r}, but this hgmem reads {VERSION}: import it "
            "with the version of hgmem that wrote it, or index the documents again"
        )
    _check_fields(HEADER, record)
    if record["schema_version"] != schema_version:
        raise LineError(
            f"schema version {record['schema_version']}, but this hgmem uses {schema_version}: import it with the "
            "version of hgmem that wrote it, or index the documents again"
        )
    if not 0 < record["dimensions"] <= MOST_DIMENSIONS:
        raise LineError(f"invalid dimensions {record['dimensions']}: expected 1 to {MOST_DIMENSIONS}")
    try:
        check_corpus_name(record["corpus"])
    except UsageError as error:
        raise LineError(str(error)) from None


def _check_fields(line: RecordType, record: Record) -> None:
    """Raise `LineError` unless the record has the fields of its type. Unknown fields are named first."""
    if None in record.values():
        null = next(name for name, value in record.items() if value is None)
        raise LineError(f"field {null!r} is null: omit it")
    try:
        _CHECKERS[line.name].model_validate(record)
    except ValidationError as error:
        raise _problem(error, line, record) from None
    for field in line.archived:
        if field.type == "own" and not record[field.name].startswith(f"{record['memory']}-"):
            raise LineError(f"field {field.name!r} belongs to another memory: {_shown(record[field.name])}")


def _problem(error: ValidationError, line: RecordType, record: Record) -> LineError:
    found = error.errors(include_url=False, include_input=False)
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return LineError(f"unknown field {name[:SHOWN]!r}")
    if first["type"] == "missing":
        return LineError(f"field {name!r} is missing")
    wanted = next(field.type for field in line.archived if field.name == name)
    return LineError(f"field {name!r}: expected {wanted}, got {_shown(record[name])}")


def _identity(kind: str, fields: Sequence[str], record: Record) -> bytes:
    values = [kind, *(record[name] for name in fields)]
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def _named(reference: Reference, record: Record) -> str:
    kind, fields = next((each for each in reference if all(name in record for name in each[1])), reference[0])
    return f"{kind} {'/'.join(str(record.get(name))[:SHOWN] for name in fields)!r}"


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
