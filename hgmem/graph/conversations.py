"""Typed wrappers for `cypher/conversations.cypher`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.database import Row
from hgmem.graph.documents import chunk_row, loaded_messages
from hgmem.graph.values import Runner, rows_with_vectors
from hgmem.models.embedding import Vectors
from hgmem.values.graph_elements import Chunk, DocumentUid
from hgmem.values.inputs import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEnd:
    """A stored conversation: its hash, its chunking, the number of its last message, and its last chunk."""

    sha256: str
    chunking: str | None
    title: str
    number: int
    chunk: Chunk | None


def conversation_end(database: Runner, *, corpus: str, uid: DocumentUid) -> ConversationEnd | None:
    """Return a conversation's state, None if there is none."""
    rows = database.run("conversation_end", corpus=corpus, uid=uid)
    if not rows:
        return None
    row = rows[0]
    chunks = [_chunk(each) for each in row.pop("chunks")]
    return ConversationEnd(**row, chunk=chunks[0] if chunks else None)


def chunks_with_messages(database: Runner, *, corpus: str, uid: DocumentUid, ids: Iterable[str]) -> list[Chunk]:
    """Return the chunks of a conversation that have messages with these ids, in order."""
    wanted = set(ids)
    parts = [json.dumps(id_, ensure_ascii=False)[1:].partition('"')[0] for id_ in wanted]
    rows = database.run("chunks_with_messages", corpus=corpus, uid=uid, ids=parts)
    chunks = [_chunk(row["chunk"]) for row in rows]
    return [chunk for chunk in chunks if any(place.id in wanted for place in chunk.messages)]


def extend_conversation(
    database: Runner, *, corpus: str, uid: DocumentUid, end: ConversationEnd | None, properties: Mapping[str, Scalar]
) -> bool:
    """Create a conversation (no `end`), or change one that still ends so. Return whether that was done."""
    last = {"uid": end.chunk.uid, "text": end.chunk.text} if end and end.chunk else None
    before = end.sha256 if end else None
    rows = database.run(
        "extend_conversation", corpus=corpus, uid=uid, before=before, last=last, properties=dict(properties)
    )
    return bool(rows)


def append_chunks(
    database: Runner, *, corpus: str, chunks: Sequence[Chunk], vectors: Vectors, before: str | None
) -> None:
    """Create chunks of a conversation with their vectors, after the chunk `before` (uid)."""
    uids = [before, *(chunk.uid for chunk in chunks)]
    rows = [{**chunk_row(chunk, corpus), "before": last} for chunk, last in zip(chunks, uids, strict=False)]
    database.run("append_chunks", corpus=corpus, rows=rows_with_vectors(rows, vectors))


def conversation_chunks(database: Runner, *, corpus: str, uid: DocumentUid) -> list[Chunk]:
    """Return all chunks of a conversation, in order."""
    return [_chunk(row["chunk"]) for row in database.run("conversation_chunks", corpus=corpus, uid=uid)]


def conversations_of_speaker(database: Runner, *, corpus: str, speaker: str) -> list[DocumentUid]:
    """Return the uids of conversations that may have a message of this speaker."""
    written = f'"speaker":{json.dumps(speaker, ensure_ascii=False)}'
    return [row["uid"] for row in database.run("conversations_of_speaker", corpus=corpus, speaker=written)]


def _chunk(row: Row) -> Chunk:
    return Chunk(**{**row, "messages": loaded_messages(row["messages"])})
