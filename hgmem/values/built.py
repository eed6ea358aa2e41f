"""Rules for what systems build: which names and values their rows and relationships may have."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

# Properties of built rows that hgmem writes. A system's own properties have other names.
OWN_PROPERTIES = frozenset(
    (
        *("uid", "corpus", "system", "kind", "key", "document", "layer_key", "text", "stems", "learnt"),
        *("embedding", "own_embedding", "vector"),
    )
)
OF_RELATIONSHIPS = frozenset(("unit",))  # the same of relationships

_PROPERTY = re.compile(r"[a-z][a-z0-9_]{0,39}")
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # integers that Neo4j stores


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltKind:
    """A kind of built rows. Its name is the readable label beside `:Built`.

    - `caption`: the property that Neo4j Browser writes into a row, `colour` its colour there, such as `#7FB069`.
    - `replaced_vectors`: a later stage gives the rows other vectors than those of their texts, such as propagated ones.
      They keep their own beside them, for when that unit is emptied.
    """

    name: str
    replaced_vectors: bool = False
    caption: str = "text"
    colour: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNames:
    """The labels and relationship types of an installed system."""

    kinds: frozenset[str]
    relationships: frozenset[str]


Installed: TypeAlias = Callable[[str], OwnNames | None]
"""Returns the names of a system, or None if it is not installed."""


def is_property_name(name: str) -> bool:
    """Return whether a system may use the name for a property."""
    return _PROPERTY.fullmatch(name) is not None


def is_scalar(value: object) -> bool:
    """Return whether the value is a text, a boolean or a finite number that Neo4j stores."""
    return isinstance(value, str | bool) or _is_number(value)


def is_property(value: object) -> bool:
    """Return whether the value is a scalar, or a list of texts, of booleans or of numbers."""
    if not isinstance(value, list):
        return is_scalar(value)
    return any(all(isinstance(each, kind) for each in value) for kind in (str, bool)) or all(map(_is_number, value))


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and SMALLEST <= value <= LARGEST
