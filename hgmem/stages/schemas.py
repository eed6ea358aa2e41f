"""The columns of the stages' Parquet files.

`metadata`, `places`, `messages` of a chunk, `reply` and `condensed` are JSON. `messages` of a document says how many,
null of what is no conversation. A hash `text_sha256` is that of the text that a reply is about, or a vector embeds. A
reply is null where the call failed; an error beside a reply says why gleaning ended early. `key` of a relation's
contribution is that of its source, `other` that of its target; `source` and `target` of a relation are uids.
"""

from collections.abc import Mapping

import pyarrow as pa

WHOLE, NUMBER, YES, TEXTS = pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())


def _schema(texts: str, **others: pa.DataType) -> pa.Schema:
    return pa.schema([*((name, pa.string()) for name in texts.split()), *others.items()])


SCHEMAS: Mapping[str, pa.Schema] = {
    "documents": _schema("uid id title source metadata sha256 chunking stems date type text places", messages=WHOLE),
    "chunks": _schema(
        "uid document text stems source_id messages layer_key", position=WHOLE, tokens=WHOLE, start=WHOLE, end=WHOLE
    ),
    "replies": _schema("chunk model prompt text_sha256 reply error"),
    "contributions": _schema("kind key other chunk name type description", keywords=TEXTS, weight=NUMBER),
    "graph/entities": _schema("uid key name type description condensed given", cut=YES, chunks=TEXTS),
    "graph/relations": _schema(
        "uid source target source_key target_key description condensed given",
        cut=YES,
        chunks=TEXTS,
        keywords=TEXTS,
        weight=NUMBER,
    ),
    "vectors": _schema("uid kind text_sha256", vector=pa.list_(pa.float32())),
}
