"""Create the schema, check its options, and wait for its indexes."""

from hgmem.errors import GraphError
from hgmem.graph.database import Database, Row

CREATE = (
    "create_corpus_name",
    "create_document_uid",
    "create_chunk_uid",
    "create_entity_uid",
    "create_relation_uid",
    "create_memory_uid",
    "create_point_uid",
    "create_answer_uid",
    "create_citation_uid",
    "create_build_uid",
    "create_unit_uid",
    "create_built_uid",
    "create_document_corpus",
    "create_chunk_corpus",
    "create_entity_corpus",
    "create_relation_corpus",
    "create_memory_corpus",
    "create_step_corpus",
    "create_subquery_corpus",
    "create_point_corpus",
    "create_answer_corpus",
    "create_citation_corpus",
    "create_build_corpus",
    "create_unit_corpus",
    "create_built_corpus",
    "create_support_build",
    "create_entity_embedding",
    "create_relation_embedding",
    "create_chunk_embedding",
    "create_point_embedding",
    "create_built_embedding",
    "create_chunk_text",
    "create_entity_text",
    "create_built_text",
)
VECTOR = {
    "entity_embedding": ("Entity", "corpus", "memory", "uid"),
    "relation_embedding": ("RELATES", "corpus", "memory", "uid"),
    "chunk_embedding": ("Chunk", "corpus", "document", "uid"),
    "point_embedding": ("MemoryPoint", "corpus", "memory", "died"),
    "built_embedding": ("Built", "corpus", "system", "kind", "document", "uid"),
}
FULLTEXT = {
    "chunk_text": ("Chunk", "corpus_key", "document", "text"),
    "entity_text": ("Entity", "corpus_key", "name", "description"),
    "built_text": ("Built", "layer_key", "document", "text"),
}
# Labels by the first word of the other index names; the second word is the property.
LABELS = {
    "corpus": "Corpus",
    "document": "Document",
    "chunk": "Chunk",
    "entity": "Entity",
    "relation": "RELATES",
    "memory": "Memory",
    "step": "Step",
    "subquery": "SubQuery",
    "point": "MemoryPoint",
    "answer": "Answer",
    "citation": "Citation",
    "build": "Build",
    "unit": "Unit",
    "built": "Built",
    "support": "RESTS_ON",
}
# Relationship types of ours, and labels without a uid of their own. Systems may not use them, nor the labels above.
TYPES = frozenset(
    (
        *("FROM_DOCUMENT", "NEXT_CHUNK", "FROM_CHUNK", "RELATES", "HAS_STEP", "NEXT_STEP", "ASKED", "TARGETS"),
        *("RETRIEVED", "HAS_POINT", "INVOLVES", "SUPPORTED_BY", "REVISED_AS", "MERGED_INTO", "HAS_ANSWER"),
        *("HAS_CITATION", "CITES", "HAS_UNIT", "MADE", "EXTENDS", "RESTS_ON"),
    )
)
MARKS = frozenset(("Provisional", "DeadPoint", "PersonEntity", "OrganizationEntity", "PlaceEntity", "EventEntity"))
AWAIT_SECONDS = 300


def ensure_schema(database: Database) -> None:
    """Create missing indexes and constraints, and wait until they are online.

    Raises `GraphError` if one can't be created, or exists with other options.
    """
    found = show_indexes(database)
    if missing(found):
        for name in CREATE:
            database.run(name)
        await_indexes(database, seconds=AWAIT_SECONDS)
        found = show_indexes(database)
    absent, odd = missing(found), differing(found)
    if absent:
        raise GraphError(
            f"the indexes {', '.join(absent)} could not be created: the user needs the privilege to create them"
        )
    if odd:
        what = "CONSTRAINT" if found[odd[0]]["constraint"] else "INDEX"
        raise GraphError(
            f"{what.lower()} {odd[0]!r} exists with different options: run DROP {what} {odd[0]}, then try again"
        )


def missing(indexes: dict[str, Row]) -> list[str]:
    """Return the names of missing indexes and constraints."""
    return [name for name in _names() if name not in indexes]


def differing(indexes: dict[str, Row]) -> list[str]:
    """Return the names of existing indexes and constraints that differ from their declaration."""
    return [name for name in _names() if name in indexes and not _as_declared(indexes[name])]


def show_indexes(database: Database) -> dict[str, Row]:
    """Return every index by name, with type, labels, properties, state and options."""
    return {row["name"]: row for row in database.run("show_indexes")}


def await_indexes(database: Database, *, seconds: int) -> None:
    """Wait until every index is online."""
    database.run("await_indexes", seconds=seconds)


def _names() -> list[str]:
    return [statement.removeprefix("create_") for statement in CREATE]


def _as_declared(row: Row) -> bool:
    name, config = row["name"], row["options"].get("indexConfig", {})
    if name not in VECTOR and name not in FULLTEXT:
        thing, of = name.split("_")
        plain = (row["type"], row["labels"], row["properties"]) == ("RANGE", [LABELS[thing]], [of])
        return plain and (row["constraint"] is None) == (of in ("corpus", "build"))  # the others are unique
    if name in FULLTEXT:
        return row["type"] == "FULLTEXT" and (*row["labels"], *row["properties"]) == FULLTEXT[name]
    label, *filters = VECTOR[name]
    return (
        row["type"] == "VECTOR"
        and row["labels"] == [label]
        and row["properties"] == ["embedding", *filters]
        and str(config.get("vector.quantization.type")).upper() == "NONE"
        and str(config.get("vector.similarity_function")).upper() == "COSINE"
        and "vector.dimensions" not in config
    )
