"""A graph of the neo4j-graphrag package: where it is, what its parts are called, and what was read of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, TypeAlias, TypedDict, Unpack

from hgmem.errors import UsageError
from hgmem.values.arguments import Option

Notes: TypeAlias = Counter[
    tuple[str, str]
]  # how often each reported event happened, keyed by its singular and plural wording


class Source(TypedDict, total=False):
    """Where a graph to adopt is, if not in the database of the client: on another server, or another of this one.

    A `from_driver` stays the caller's. Without `from_password`, that of HGMEM_FROM_PASSWORD is used.
    """

    from_driver: Any
    from_uri: Annotated[str, Option("URI", "Another server, where the graph is. Its password: HGMEM_FROM_PASSWORD.")]
    from_username: Annotated[str, Option("NAME", "Its user. Default: neo4j.")]
    from_password: str
    from_database: Annotated[str, Option("NAME", "Another database, of that server or of the usual one.")]


class Names(TypedDict, total=False):
    """The labels, relationship types and property names of their graph that differ from the package's.

    A line here is a keyword argument of `HGMem.adopt` and an option of `hgmem import neo4j-graphrag`. Its default is in
    `Shape`.
    """

    document_label: Annotated[str, Option("LABEL", "Label of documents.")]
    chunk_label: Annotated[str, Option("LABEL", "Label of chunks.")]
    entity_label: Annotated[str, Option("LABEL", "Label of all entities.")]
    document_relationship: Annotated[str, Option("TYPE", "Relationship type between chunk and document.")]
    next_relationship: Annotated[str, Option("TYPE", "Relationship type to the next chunk.")]
    entity_relationship: Annotated[str, Option("TYPE", "Relationship type between entity and chunk.")]
    text_property: Annotated[str, Option("NAME", "Property with a chunk's text.")]
    index_property: Annotated[str, Option("NAME", "Property with a chunk's number in its document.")]
    id_property: Annotated[str, Option("NAME", "Property with a chunk's own id.")]
    name_property: Annotated[str, Option("NAME", "Property with an entity's name.")]


class Adopting(Source, Names, total=False):
    """The keyword arguments of `HGMem.adopt` that describe a graph: where it is, and what its parts are called.

    `config` is a `LexicalGraphConfig` of Neo4j's GraphRAG package; names that are given count before its own.
    """

    config: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The names of labels, types and properties in the source graph, by default neo4j-graphrag's.

    `config` is a field's name in the package's `LexicalGraphConfig`.
    """

    document_label: str = field(default="Document", metadata={"config": "document_node_label"})
    chunk_label: str = field(default="Chunk", metadata={"config": "chunk_node_label"})
    entity_label: str = "__Entity__"
    document_relationship: str = field(
        default="FROM_DOCUMENT", metadata={"config": "chunk_to_document_relationship_type"}
    )
    next_relationship: str = field(default="NEXT_CHUNK", metadata={"config": "next_chunk_relationship_type"})
    entity_relationship: str = field(default="FROM_CHUNK", metadata={"config": "node_to_chunk_relationship_type"})
    text_property: str = field(default="text", metadata={"config": "chunk_text_property"})
    index_property: str = field(default="index", metadata={"config": "chunk_index_property"})
    id_property: str = field(default="id", metadata={"config": "chunk_id_property"})
    name_property: str = "name"

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, str) or not value or "\0" in value:
                raise UsageError(
                    f"invalid {each.name}={value!r}: use the name of a label, a relationship type or a property"
                )
        labels = (self.document_label, self.chunk_label, self.entity_label)
        if len(set(labels)) < len(labels):
            raise UsageError(
                f"documents, chunks and entities need three different labels, not {', '.join(map(repr, labels))}"
            )


def configured(config: object, **named: Unpack[Names]) -> Shape:
    """Return the shape with the given names. The rest comes from a `LexicalGraphConfig` or is the default."""
    if config is not None and not hasattr(config, "chunk_node_label"):
        raise UsageError(f"{type(config).__name__!r} is not a LexicalGraphConfig: pass one, or pass the labels by name")
    configurable = [each for each in fields(Shape) if each.metadata]
    theirs: dict[str, Any] = {each.name: getattr(config, each.metadata["config"], None) for each in configurable}
    return Shape(**{**{name: value for name, value in theirs.items() if value is not None}, **named})


Element: TypeAlias = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class ForeignGraph:
    """The elements read from the source graph, each kind by element id, which is the `id` of each.

    - `documents` have `properties`.
    - `chunks` have a `text`, a stored number (`position`) and id (`own`), and the element ids of their `documents` and
      of the chunks `following` them.
    - `entities` have `labels`, `properties`, and the element ids of the `chunks` that mention them.
    - `relations` have a `type`, `source`, `target` and `properties`.
    """

    documents: list[Element] = field(default_factory=list)
    chunks: list[Element] = field(default_factory=list)
    entities: list[Element] = field(default_factory=list)
    relations: list[Element] = field(default_factory=list)
