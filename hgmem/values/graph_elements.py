"""The document graph: chunks, entities and the relations between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from hgmem.values.conversations import MessagePlace

DocumentUid = NewType("DocumentUid", str)
EntityUid = NewType("EntityUid", str)
RelationUid = NewType("RelationUid", str)


MOST_NAMES = 8  # of an entity, beside the one that is shown first


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document: `document.text[start:end] == text`, if the offsets are known.

    `title`, `date` (YYYY-MM-DD or YYYY-MM) and `type` are those of the document. `messages` are the messages of a
    conversation that stand in the text, with their places in it. `entities` are those that the chunk mentions, empty
    unless they were read with it.
    """

    uid: str
    document: str
    position: int
    text: str
    tokens: int
    start: int | None = None
    end: int | None = None
    title: str = ""
    date: str = ""
    type: str = ""
    source_id: str = ""
    messages: tuple[MessagePlace, ...] = ()
    entities: tuple["Entity", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A vertex. `provisional` entities were named by a model and belong to one memory.

    Several entities that name one thing are a class. Each has its `canonical_uid` and, where they were read, the
    class's `names`, first the one that prompts show. Both are empty for other entities.
    """

    uid: str
    name: str
    type: str = ""
    description: str = ""
    provisional: bool = False
    canonical_uid: str = ""
    names: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name that prompts show."""
        return self.names[0] if self.names else self.name

    @property
    def thing(self) -> str:
        """The uid of what the entity names: two entities of one class name the same thing."""
        return self.canonical_uid or self.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """An undirected edge between two entities, named by their uids and their names.

    `ends` are the `Entity.thing` of both, where it was retrieved.
    """

    uid: str
    source: str
    target: str
    source_name: str
    target_name: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """An aggregated description. `condensed` is the JSON of its summary, `cut` tells that it is truncated."""

    text: str = ""
    condensed: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFields:
    """An entity's aggregated name, type and description."""

    name: str
    type: str
    description: Description


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFields:
    """A relation's aggregated description, keywords and weight."""

    description: Description
    keywords: tuple[str, ...]
    weight: float


def with_others(name: str, names: Sequence[str]) -> str:
    """Return the name of an entity, with others of its `names`."""
    others = [other for other in names if other != name][:MOST_NAMES]
    return f"{name} (also: {', '.join(others)})" if others else name
