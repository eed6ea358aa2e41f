"""Between numpy, JSON and what the driver takes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Protocol

import numpy as np
from neo4j.vector import Vector

from hgmem.graph.database import Row


class Runner(Protocol):
    """A database or a running transaction."""

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""


def vector(values: Any) -> Vector:
    """Return one row of float32 as the driver's vector, a tenth of the time of a list on the wire."""
    return Vector.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def rows_with_vectors(rows: Iterable[Row], vectors: Iterable[Any]) -> list[Row]:
    """Return the rows, each with its vector."""
    return [{**row, "vector": vector(values)} for row, values in zip(rows, vectors, strict=True)]


def to_json(value: object) -> str:
    """Return compact JSON of plain values and dataclasses."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
