"""What an archive holds: its kinds of records, one for each label and relationship type, and their fields.

What says where a thing belongs has no record of its own: a chunk's `document` is FROM_DOCUMENT, the `memory` of a step
and of a point is HAS_STEP and HAS_POINT, and so on. docs/archives.md shows all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

FORMAT = "hgmem-archive"
VERSION = 1
HEADER, FOOTER = "archive", "end"

# Whose identity it is, and the fields of the record that give it; one of several is enough.
Reference: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Records of one kind: types by field (`?` marks what may be absent), what tells one from another, what it names.

    `needs` are fields of which exactly one is there.
    """

    name: str
    fields: Mapping[str, str]
    identity: tuple[str, ...] = ()
    refers: tuple[Reference, ...] = ()
    needs: tuple[str, ...] = ()


def _to(kind: str, *fields: str) -> Reference:
    return ((kind, fields),)


def _to_entity(field: str) -> Reference:
    """Return a reference to an entity of the corpus, or to one of the record's own memory."""
    return (("Entity", (field,)), ("Provisional", ("memory", field)))


def _joined(name: str, to: str) -> Kind:
    """Return the kind of relationships between two points of one memory, or two of its steps."""
    type_ = "own" if to == "MemoryPoint" else "integer"
    fields = {"memory": "memory", "source": type_, "target": type_}
    return Kind(name=name, fields=fields, refers=(_to(to, "memory", "source"), _to(to, "memory", "target")))


_SUBQUERY = {"memory": "memory", "step": "integer", "number": "integer"}
_OF_SUBQUERY = _to("SubQuery", "memory", "step", "number")

_CORPUS = (
    Kind(
        name="Document",
        fields={
            "uid": "uid",
            "title": "text",
            "source": "text",
            "sha256": "text",
            "metadata": "object",
            "status": "text",
            "chunking": "text?",
            "indexed_at": "time?",
        },
        identity=("uid",),
    ),
    Kind(
        name="Chunk",
        fields={
            "uid": "uid",
            "document": "uid",
            "position": "integer",
            "text": "text",
            "tokens": "integer",
            "start": "integer?",
            "end": "integer?",
            "status": "text",
            "error": "text?",
            "attempts": "integer",
            "extraction": "extraction?",
            "source_id": "text?",
            "embedding": "vector?",
        },
        identity=("uid",),
        refers=(_to("Document", "document"),),
    ),
    Kind(
        name="NEXT_CHUNK",
        fields={"source": "uid", "target": "uid"},
        refers=(_to("Chunk", "source"), _to("Chunk", "target")),
    ),
    Kind(
        name="Entity",
        fields={
            "uid": "uid",
            "key": "text",
            "name": "text",
            "type": "text",
            "description": "text",
            "given": "given entities?",
            "condensed": "condensed?",
            "cut": "boolean?",
            "stale": "boolean?",
            "embedding": "vector?",
        },
        identity=("uid",),
    ),
    Kind(
        name="FROM_CHUNK",
        fields={"entity": "uid", "chunk": "uid"},
        refers=(_to("Entity", "entity"), _to("Chunk", "chunk")),
    ),
    Kind(
        name="RELATES",
        fields={
            "uid": "uid",
            "memory": "memory or none",
            "source": "text",
            "target": "text",
            "description": "text",
            "keywords": "texts",
            "weight": "number",
            "chunks": "texts",
            "given": "given relations?",
            "condensed": "condensed?",
            "cut": "boolean?",
            "stale": "boolean?",
            "embedding": "vector?",
        },
        identity=("uid",),
        refers=(_to_entity("source"), _to_entity("target")),
    ),
)
_MEMORIES = (
    Kind(
        name="Memory",
        fields={
            "uid": "memory",
            "system": "text",
            "model": "text",
            "question": "text",
            "latest": "text?",
            "settings": "object",
            "filters": "filters?",
            "status": "text",
            "created_at": "time",
        },
        identity=("uid",),
    ),
    Kind(
        name="Provisional",
        fields={
            "uid": "own",
            "memory": "memory",
            "name": "text",
            "type": "text?",
            "description": "text?",
            "embedding": "vector?",
        },
        identity=("memory", "uid"),
        refers=(_to("Memory", "memory"),),
    ),
    Kind(
        name="Step",
        fields={
            "memory": "memory",
            "number": "integer",
            "question": "text?",
            "strategy": "text",
            "judgement": "text?",
            "operations": "operations",
            "planned": "planned?",
            "filters": "filters?",
            "notes": "texts",
            "seconds": "number",
            "usage": "usage",
            "created_at": "time?",
        },
        identity=("memory", "number"),
        refers=(_to("Memory", "memory"),),
    ),
    _joined("NEXT_STEP", "Step"),
    Kind(
        name="MemoryPoint",
        fields={
            "uid": "own",
            "memory": "memory",
            "description": "text",
            "born": "integer",
            "died": "integer?",
            "embedding": "vector?",
        },
        identity=("memory", "uid"),
        refers=(_to("Memory", "memory"),),
    ),
    Kind(
        name="INVOLVES",
        fields={"memory": "memory", "point": "own", "entity": "text"},
        refers=(_to("MemoryPoint", "memory", "point"), _to_entity("entity")),
    ),
    Kind(
        name="SUPPORTED_BY",
        fields={"memory": "memory", "point": "own", "chunk": "uid"},
        refers=(_to("MemoryPoint", "memory", "point"), _to("Chunk", "chunk")),
    ),
    _joined("REVISED_AS", "MemoryPoint"),
    _joined("MERGED_INTO", "MemoryPoint"),
    Kind(
        name="SubQuery",
        fields={**_SUBQUERY, "text": "text", "concern": "text?", "strategy": "text", "relations": "texts"},
        identity=("memory", "step", "number"),
        refers=(_to("Step", "memory", "step"),),
    ),
    Kind(
        name="RETRIEVED",
        fields={**_SUBQUERY, "entity": "text?", "chunk": "uid?", "rank": "integer", "score": "number?"},
        refers=(_OF_SUBQUERY, (*_to_entity("entity"), *_to("Chunk", "chunk"))),
        needs=("entity", "chunk"),
    ),
    Kind(
        name="TARGETS",
        fields={**_SUBQUERY, "point": "own"},
        refers=(_OF_SUBQUERY, _to("MemoryPoint", "memory", "point")),
    ),
    Kind(
        name="Answer",
        fields={
            "uid": "own",
            "memory": "memory",
            "question": "text",
            "text": "text",
            "status": "text",
            "step": "integer",
            "model": "text",
            "notes": "texts",
            "seconds": "number",
            "usage": "usage",
            "created_at": "time",
        },
        identity=("memory", "uid"),
        refers=(_to("Memory", "memory"),),
    ),
    Kind(
        name="Citation",
        fields={
            "uid": "own",
            "memory": "memory",
            "answer": "own",
            "marker": "integer",
            "chunk": "text",
            "document": "text",
            "title": "text",
            "quote": "text",
            "start": "integer?",
            "end": "integer?",
            "source_id": "text",
            "withdrawn": "boolean",
        },
        identity=("memory", "uid"),
        refers=(_to("Answer", "memory", "answer"),),
    ),
    Kind(
        name="CITES",
        fields={"memory": "memory", "citation": "own", "chunk": "uid"},
        refers=(_to("Citation", "memory", "citation"), _to("Chunk", "chunk")),
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_CORPUS, *_MEMORIES)}
OF_MEMORIES = frozenset(kind.name for kind in _MEMORIES)

HEADER_FIELDS: Mapping[str, str] = {
    "format": "text",
    "version": "integer",
    "hgmem": "text",
    "corpus": "text",
    "embedding_model": "text",
    "dimensions": "integer",
    "schema_version": "integer",
    "settings": "object",
    "created_at": "time",
    "imported": "text?",
    "embeddings": "boolean",
    "memories": "boolean",
}
