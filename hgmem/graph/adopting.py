"""Typed wrappers for `cypher/adopting.cypher`."""

from collections.abc import Sequence

from hgmem.graph.values import Runner
from hgmem.values.foreign_graph import ForeignChunk, ForeignDocument, ForeignEntity, ForeignRelation, Shape


def foreign_documents(database: Runner, *, ids: Sequence[str]) -> list[ForeignDocument]:
    """Return the stored documents with these element ids."""
    rows = database.run("foreign_documents", ids=list(ids))
    return [ForeignDocument(id=row["id"], properties=dict(row["properties"])) for row in rows]


def foreign_chunks(database: Runner, *, ids: Sequence[str], shape: Shape) -> list[ForeignChunk]:
    """Return the stored chunks with these element ids, and the documents and chunks that they link to."""
    rows = database.run(
        "foreign_chunks",
        ids=list(ids),
        text=shape.text_property,
        position=shape.index_property,
        own=shape.id_property,
        in_document=shape.document_relationship,
        document=shape.document_label,
        next_chunk=shape.next_relationship,
        chunk=shape.chunk_label,
    )
    return [
        ForeignChunk(**row | {"documents": tuple(row["documents"]), "following": tuple(row["following"])})
        for row in rows
    ]


def foreign_entities(database: Runner, *, ids: Sequence[str], shape: Shape) -> list[ForeignEntity]:
    """Return the stored entities with these element ids, and the chunks that mention them."""
    rows = database.run(
        "foreign_entities", ids=list(ids), from_chunk=shape.entity_relationship, chunk=shape.chunk_label
    )
    return [
        ForeignEntity(
            id=row["id"],
            labels=tuple(row["labels"]),
            properties=dict(row["properties"]),
            chunks=tuple(row["chunks"]),
        )
        for row in rows
    ]


def foreign_relations(
    database: Runner, *, ids: Sequence[str], shape: Shape, after: str, most: int
) -> list[ForeignRelation]:
    """Return the next relationships, by element id, from these entities to any entity."""
    rows = database.run(
        "foreign_relations",
        ids=list(ids),
        entity=shape.entity_label,
        others=list(shape.lexical_labels),
        after=after,
        most=most,
    )
    return [ForeignRelation(**row | {"properties": dict(row["properties"])}) for row in rows]


def foreign_labels(database: Runner, *, most: int) -> dict[str, int]:
    """Return the labels with the most foreign nodes, and the number of those nodes."""
    return {row["label"]: row["nodes"] for row in database.run("foreign_labels", most=most)}
