"""Convert between numpy arrays, JSON and the driver's types."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from neo4j.vector import Vector

from hgmem.graph.database import Row

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Runner(Protocol):
    """A database or a running transaction."""

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""


def vector(values: Any) -> Vector:
    """Return one row of float32 as the driver's vector type.

    Sending it takes a tenth of the time of a list.
    """
    return Vector.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def rows_with_vectors(rows: Iterable[Row], vectors: Iterable[Any]) -> list[Row]:
    """Return the rows, each with its vector."""
    return [{**row, "vector": vector(values)} for row, values in zip(rows, vectors, strict=True)]


def with_some_vectors(rows: Iterable[Row], vectors: Mapping[str, Any]) -> list[Row]:
    """Return the rows, adding a vector to those whose uid has one."""
    return [{**row, "vector": vector(vectors[row["uid"]])} if row["uid"] in vectors else row for row in rows]


def to_json(value: object) -> str:
    """Return compact JSON of plain values and dataclasses."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields."""
    return tuple(each.name for each in fields(kind))


def _plain(value: object) -> object:
    """Convert one layer of a value that JSON does not support."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
