"""The columns of the stages' Parquet files."""

from collections.abc import Mapping

import pyarrow as pa

_TEXTS = pa.list_(pa.string())

DOCUMENTS = pa.schema(
    [
        ("uid", pa.string()),
        ("id", pa.string()),
        ("title", pa.string()),
        ("source", pa.string()),
        ("metadata", pa.string()),  # JSON
        ("sha256", pa.string()),
        ("chunking", pa.string()),
        ("stems", pa.string()),
        ("date", pa.string()),
        ("type", pa.string()),
        ("messages", pa.int64()),  # how many, null of what is no conversation
        ("text", pa.string()),
        ("places", pa.string()),  # of the messages, JSON
    ]
)
CHUNKS = pa.schema(
    [
        ("uid", pa.string()),
        ("document", pa.string()),
        ("position", pa.int64()),
        ("text", pa.string()),
        ("stems", pa.string()),
        ("tokens", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("source_id", pa.string()),
        ("messages", pa.string()),  # JSON
        ("layer_key", pa.string()),
    ]
)
REPLIES = pa.schema(
    [
        ("chunk", pa.string()),
        ("model", pa.string()),
        ("prompt", pa.string()),  # its version
        ("text_sha256", pa.string()),  # of the chunk's text
        ("reply", pa.string()),  # JSON, null where the call failed
        ("error", pa.string()),  # beside a reply: why gleaning ended early
    ]
)
CONTRIBUTIONS = pa.schema(
    [
        ("kind", pa.string()),  # entities or relations
        ("key", pa.string()),  # of a relation that of its source
        ("other", pa.string()),  # the key of a relation's target
        ("chunk", pa.string()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("description", pa.string()),
        ("keywords", _TEXTS),
        ("weight", pa.float64()),
    ]
)
_FIELDS = [
    ("description", pa.string()),
    ("condensed", pa.string()),  # JSON
    ("cut", pa.bool_()),
    ("given", pa.string()),
    ("chunks", _TEXTS),
]
ENTITIES = pa.schema(
    [("uid", pa.string()), ("key", pa.string()), ("name", pa.string()), ("type", pa.string()), *_FIELDS]
)
RELATIONS = pa.schema(
    [
        ("uid", pa.string()),
        ("source", pa.string()),  # uid
        ("target", pa.string()),
        ("source_key", pa.string()),
        ("target_key", pa.string()),
        ("keywords", _TEXTS),
        ("weight", pa.float64()),
        *_FIELDS,
    ]
)
VECTORS = pa.schema(
    [
        ("uid", pa.string()),
        ("kind", pa.string()),  # chunks, entities or relations
        ("vector", pa.list_(pa.float32())),
        ("text_sha256", pa.string()),  # of the text that it embeds
    ]
)

SCHEMAS: Mapping[str, pa.Schema] = {
    "documents": DOCUMENTS,
    "chunks": CHUNKS,
    "replies": REPLIES,
    "contributions": CONTRIBUTIONS,
    "graph/entities": ENTITIES,
    "graph/relations": RELATIONS,
    "vectors": VECTORS,
}
