"""Create the schema, check its options, and wait for its indexes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from hgmem.errors import GraphError
from hgmem.graph.database import Database, Row
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.statements import find_statement, statements

TYPES = frozenset(
    (
        *(one.name for one in RECORD_TYPES.values() if one.source and one.name != "RELATIONSHIP"),
        *(one.link.type for one in RECORD_TYPES.values() if one.link),
    )
)
_MARKS = ("Provisional", "DeadPoint", "PersonEntity", "OrganizationEntity", "PlaceEntity", "EventEntity")
SERVICE = ("Key", "Session", "Job")  # of no corpus: nodes of the service
OURS = TYPES | {"Corpus", *_MARKS, *RECORD_TYPES, *SERVICE} - {"RELATIONSHIP"}
"""Labels and relationship types of ours, which systems may not use. `TYPES` are the latter."""
_OF_CORPUS = ("corpus", "embedding_model", "dimensions", "schema_version", "language", "archive", "imported", "cleared")
_OF_SERVICE = (
    *("hash", "owner", "scopes", "corpora", "created_at", "expires_at", "revoked_at", "minute", "day"),
    *("questions_per_minute", "tokens_per_day", "bytes_per_day", "questions", "tokens", "bytes"),
    *("kind", "key", "digest", "arguments", "data", "state", "taken", "run", "heartbeat", "attempts", "done", "total"),
    *("memory", "cancel", "error", "result", "ended_at"),
)
PROPERTIES = frozenset(
    (
        *_OF_CORPUS,
        *_OF_SERVICE,
        *(field.name for one in RECORD_TYPES.values() for field in one.fields if field.rule != "archive"),
    )
)
_LABELS = re.compile(r"[(\[]\w:([\w|]+)")
_PROPERTY = re.compile(r"\b[nr]\.(\w+)")
AWAIT_SECONDS = 300
AWAIT_EACH = 7 * 24 * 3_600  # of a full database


def ensure_schema(database: Database) -> None:
    """Create missing indexes and constraints, and wait until they are online.

    Raises `GraphError` if one can't be created, or exists with other options.
    """
    found = show_indexes(database)
    if missing(found):
        _create_names(database)
        for name in creating():
            database.run(name)
        _await_indexes(database, AWAIT_SECONDS)
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


def build_schema(database: Database) -> Iterator[str]:
    """Create the indexes and constraints of a full database one after the other, however long each takes.

    Yields the name of each when it is online.
    """
    _create_names(database)
    for name in creating():
        database.run(name)
        _await_indexes(database, AWAIT_EACH)
        yield name.removeprefix("create_")
    ensure_schema(database)


def _await_indexes(database: Database, seconds: int) -> None:
    database.run("await_indexes", seconds=seconds)


def _create_names(database: Database) -> None:
    labels = [*sorted(OURS - TYPES - set(_MARKS)), *_MARKS]  # their order in `labels(n)`
    database.run("create_names", labels=labels, types=sorted(TYPES), properties=sorted(PROPERTIES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An index as its statement declares it: the labels or relationship type, the properties, and its type."""

    labels: list[str]
    properties: list[str]
    type: str
    constraint: bool


@cache
def declared() -> dict[str, Declared]:
    """Return all indexes and constraints by name."""
    found = {}
    for name in creating():
        text = find_statement(name).text
        kind = text.split()[3]  # after CYPHER 25 CREATE
        found[name.removeprefix("create_")] = Declared(
            labels=_LABELS.findall(text)[0].split("|"),
            properties=_PROPERTY.findall(text),
            type=kind if kind in ("VECTOR", "FULLTEXT") else "RANGE",
            constraint=kind == "CONSTRAINT",
        )
    return found


def missing(indexes: dict[str, Row]) -> list[str]:
    """Return the names of missing indexes and constraints."""
    return [name for name in declared() if name not in indexes]


def differing(indexes: dict[str, Row]) -> list[str]:
    """Return the names of existing indexes and constraints that differ from their declaration."""
    return [name for name, one in declared().items() if name in indexes and not _is_as_declared(indexes[name], one)]


def show_indexes(database: Database) -> dict[str, Row]:
    """Return every index by name, with type, labels, properties, state and options."""
    return {row["name"]: row for row in database.run("show_indexes")}


def creating() -> list[str]:
    """Return the names of the statements that create the schema, in order."""
    return [name for name, one in statements().items() if name.startswith("create_") and one.mode == "schema"]


def _is_as_declared(row: Row, wanted: Declared) -> bool:
    if (row["type"], row["labels"], row["properties"]) != (wanted.type, wanted.labels, wanted.properties):
        return False
    config = row["options"].get("indexConfig", {})
    if wanted.type == "FULLTEXT" and config.get("fulltext.analyzer") != "whitespace":
        return False
    if wanted.type != "VECTOR":
        return (row["constraint"] is not None) == wanted.constraint
    return (
        str(config.get("vector.quantization.type")).upper() == "NONE"
        and str(config.get("vector.similarity_function")).upper() == "COSINE"
        and "vector.dimensions" not in config
    )
