"""How their graph is drawn, and what was read of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from hgmem.errors import UsageError

Notes: TypeAlias = Counter[
    tuple[str, str]
]  # how often something happened that has to be said, in words for one and many


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The labels, relationship types and property names of their graph; the defaults are the package's."""

    document_label: str = "Document"
    chunk_label: str = "Chunk"
    entity_label: str = "__Entity__"
    document_relationship: str = "FROM_DOCUMENT"
    next_relationship: str = "NEXT_CHUNK"
    entity_relationship: str = "FROM_CHUNK"
    text_property: str = "text"
    index_property: str = "index"
    id_property: str = "id"
    name_property: str = "name"

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, str) or not value or "\0" in value:
                raise UsageError(f"{each.name}={value!r} names nothing in a graph: give a label, a type or a property")
        labels = (self.document_label, self.chunk_label, self.entity_label)
        if len(set(labels)) < len(labels):
            raise UsageError(f"documents, chunks and entities have a label each, not {', '.join(map(repr, labels))}")

    @property
    def lexical_labels(self) -> tuple[str, str]:
        """The labels of what is no entity."""
        return self.document_label, self.chunk_label


# What the package's `LexicalGraphConfig` calls these.
_CONFIGURED = {
    "document_label": "document_node_label",
    "chunk_label": "chunk_node_label",
    "document_relationship": "chunk_to_document_relationship_type",
    "next_relationship": "next_chunk_relationship_type",
    "entity_relationship": "node_to_chunk_relationship_type",
    "text_property": "chunk_text_property",
    "index_property": "chunk_index_property",
    "id_property": "chunk_id_property",
}


def configured(config: object, **named: str) -> Shape:
    """Return the shape that is named; the rest is as in a `LexicalGraphConfig` of any version, or by default."""
    if config is not None and not hasattr(config, "chunk_node_label"):
        raise UsageError(f"{type(config).__name__!r} is no LexicalGraphConfig: give one, or the labels by name")
    theirs = {name: getattr(config, attribute, None) for name, attribute in _CONFIGURED.items()}
    return Shape(**{name: value for name, value in theirs.items() if value is not None} | named)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDocument:
    """A document of theirs; `id` is the element id, here as everywhere below."""

    id: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChunk:
    """A chunk of theirs: text, number and own id as they are stored, and what it leads to, by element id."""

    id: str
    text: Any
    position: Any = None
    own: Any = None
    documents: tuple[str, ...] = ()
    following: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignEntity:
    """An entity of theirs, and the chunks that mention it."""

    id: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRelation:
    """A relationship of theirs between two entities."""

    id: str
    type: str
    source: str
    target: str
    properties: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Found:
    """All that was read of their graph, each kind by element id."""

    documents: list[ForeignDocument] = field(default_factory=list)
    chunks: list[ForeignChunk] = field(default_factory=list)
    entities: list[ForeignEntity] = field(default_factory=list)
    relations: list[ForeignRelation] = field(default_factory=list)
