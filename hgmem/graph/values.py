"""Convert between values, numpy arrays, JSON and the driver's types."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from neo4j.vector import Vector

from hgmem.graph.database import Row
from hgmem.graph.record_fields import JSON, VECTORS, FieldType, RecordType
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.values.conversations import MessagePlace
from hgmem.values.evidence import BuiltHit, Subquery
from hgmem.values.records import Operation
from hgmem.values.usage import Usage

T = TypeVar("T")


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


NAMES = {"Subquery": "SubQuery", "Relation": "RELATES"}  # the record types of classes with other names
EMPTY: tuple[object, ...] = (None, "", (), {})  # values of optional attributes that are not stored
# What JSON is read as, by the type of its field.
READ: Mapping[FieldType, Callable[[Any], Any]] = {
    "operations": lambda found: tuple(_value(Operation, each) for each in found),
    "planned": lambda found: tuple(_value(Subquery, each) for each in found),
    "retrieved built rows": lambda found: tuple(_value(BuiltHit, each) for each in found),
    "usage": lambda found: Usage(**{name: found[name] for name in _names(Usage) if name in found}),
    "filters": lambda found: {name: tuple(wanted) for name, wanted in found.items()},
}
NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Runner(Protocol):
    """A database or a running transaction."""

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""


def uids_of(database: Runner, name: str, /, **parameters: Any) -> list[Any]:
    """Return the uids that a statement returns, in its order."""
    return [row["uid"] for row in database.run(name, **parameters)]


def by_uid(database: Runner, name: str, /, **parameters: Any) -> dict[str, Row]:
    """Return the rows of a statement by their uids."""
    return {row["uid"]: row for row in database.run(name, **parameters)}


def vector(values: Any) -> Vector:
    """Return one row of float32 as the driver's vector type.

    Sending it takes a tenth of the time of a list.
    """
    return Vector.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def rows_with_vectors(rows: Iterable[Row], vectors: Iterable[Any]) -> list[Row]:
    """Return the rows, each with its vector."""
    return [{**row, "vector": vector(values)} for row, values in zip(rows, vectors, strict=True)]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows sorted by uid, so that concurrent writers lock in the same order."""
    return sorted(rows, key=itemgetter("uid"))


VectorWriter: TypeAlias = Callable[..., None]  # writer(database, corpus=…, rows=…, vectors=…)


def vector_writer(name: str) -> VectorWriter:
    """Return what writes the vectors of rows by the statement of this name."""

    def put(database: Runner, *, corpus: str, rows: Iterable[Row], vectors: Iterable[Any]) -> None:
        database.run(name, corpus=corpus, rows=in_order(rows_with_vectors(rows, vectors)))

    return put


def with_some_vectors(rows: Iterable[Row], vectors: Mapping[str, Any]) -> list[Row]:
    """Return the rows, adding a vector to those whose uid has one."""
    return [{**row, "vector": vector(vectors[row["uid"]])} if row["uid"] in vectors else row for row in rows]


def to_properties(value: Any, name: str = "") -> Row:
    """Return the properties that a value has as a record of its own type, or of this one.

    Without times, which the server writes, and without vectors. An optional property without a value is null.
    """
    return {
        field.name: _stored(field.type, getattr(value, field.name), optional=field.optional)
        for field in (RECORD_TYPES[name] if name else _type_of(type(value))).kept
        if hasattr(value, field.name) and field.type != "time" and field.type not in VECTORS
    }


def from_properties(kind: type[T], row: Row, **more: Any) -> T:
    """Return a value from its stored properties and more attributes."""
    return kind(**attributes(kind, row) | more)


def attributes(kind: Any, row: Row) -> Row:
    """Return the attributes of such a value that its properties give. Those of null properties are missing."""
    return {
        field.name: from_stored(field.type, row[field.name])
        for field in _type_of(kind).kept
        if field.name in _names(kind) and row.get(field.name) is not None
    }


def _type_of(kind: Any) -> RecordType:
    return RECORD_TYPES[NAMES.get(kind.__name__, kind.__name__)]


def from_stored(type_: FieldType, stored: Any) -> Any:
    """Return the attribute for a stored property of this type."""
    if type_ in READ:
        return READ[type_](json.loads(stored))
    return tuple(stored) if type_ == "texts" else stored


def _stored(type_: FieldType, value: Any, *, optional: bool) -> Any:
    if optional and value in EMPTY:
        return None
    if type_ in JSON:
        return to_json(value)
    return list(value) if type_ == "texts" else value


def _value(kind: type[T], row: Row) -> T:
    return kind(**{name: tuple(given) if isinstance(given, list) else given for name, given in row.items()})


def to_json(value: object) -> str:
    """Return compact JSON of plain values and dataclasses."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """Convert one layer of a value that JSON does not support."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def dumped_messages(places: Sequence[MessagePlace]) -> str | None:
    """Return the places as JSON, None if there are none. Metadata that is empty is left out."""
    if not places:
        return None
    return to_json([{name: value for name, value in asdict(place).items() if value != {}} for place in places])


def loaded_messages(text: str | None) -> tuple[MessagePlace, ...]:
    """Return the places that the JSON holds."""
    return tuple(MessagePlace(**place) for place in json.loads(text)) if text else ()
