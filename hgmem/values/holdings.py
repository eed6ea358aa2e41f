"""What a corpus holds, as people look through it: things, and rows of builds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hgmem.values.graph_elements import Chunk, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """What an entity names, or several of one class: the names of all, and how many chunks mention it."""

    uid: str
    name: str
    names: tuple[str, ...]
    type: str
    description: str
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingTie:
    """What is said of a thing together with another: the other's entity (uid) and name, and the description."""

    entity: str
    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownThing:
    """A thing with its entities, the first chunks that mention it, and the strongest relations to others."""

    uid: str
    entities: tuple[Entity, ...]
    passages: tuple[Chunk, ...]
    ties: tuple[ThingTie, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRow:
    """A row of a build, or a chunk beneath one (kind `Chunk`). `parts` counts the rows and chunks that it rests on.

    `properties` are those that its system gives it. `document` (uid) is empty where it rests on several.
    """

    uid: str
    kind: str
    text: str
    document: str
    parts: int
    properties: Mapping[str, Any]
