"""Create the schema, check its options, and wait for its indexes."""

from hgmem.errors import GraphError
from hgmem.graph.database import Database, Row
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.statements import statements

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
        *(one.name for one in RECORD_TYPES.values() if one.source and one.name != "RELATIONSHIP"),
        *(one.link.type for one in RECORD_TYPES.values() if one.link),
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
        for name in creating():
            database.run(name)
        database.run("await_indexes", seconds=AWAIT_SECONDS)
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


def creating() -> list[str]:
    """Return the names of the statements that create the schema, in order."""
    return [name for name, one in statements().items() if name.startswith("create_") and one.mode == "schema"]


def _names() -> list[str]:
    return [name.removeprefix("create_") for name in creating()]


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
