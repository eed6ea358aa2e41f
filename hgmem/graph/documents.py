"""Typed wrappers for `cypher/documents.cypher` and `cypher/conversations.cypher`."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.errors import ConflictError
from hgmem.graph.database import Row, remaining
from hgmem.graph.values import (
    NOTHING,
    Runner,
    dumped_messages,
    in_order,
    loaded_messages,
    rows_with_vectors,
    vector,
    with_some_vectors,
)
from hgmem.models.embedding import Vectors
from hgmem.text import identity
from hgmem.text.identity import chunk_layer
from hgmem.text.stems import stored_stems
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk, DocumentUid, EntityUid, RelationUid
from hgmem.values.inputs import Scalar

EMBEDDED = "embedded"  # the status of chunks and documents that are indexed without a graph


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """What is stored of a document: text hash, status, chunking options, and metadata (JSON)."""

    uid: DocumentUid
    id: str
    sha256: str
    status: str
    chunking: str
    title: str
    source: str
    metadata: str

    @property
    def description(self) -> dict[str, Scalar]:
        """The properties that describe the document to people and filters."""
        return {"id": self.id, "title": self.title, "source": self.source, "metadata": self.metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChunk:
    """A chunk that is not done, with its extraction once the status is `extracted`.

    `outdated` says that it has the extraction of a shorter text, `has_messages` that it is of a conversation.
    """

    uid: str
    document: DocumentUid
    text: str
    status: str
    position: int
    title: str
    date: str
    type: str
    extraction: str | None = None
    outdated: bool = False
    has_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkText:
    """What a chunk holds, and where it begins in its document."""

    uid: str
    text: str
    status: str
    start: int | None
    messages: tuple[MessagePlace, ...]


def document_uid(corpus: str, id_: str) -> DocumentUid:
    """Return the uid of the document with this id, or with this path as its source."""
    return DocumentUid(identity.uid(corpus, "document", id_))


def document_states(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, DocumentState]:
    """Return the stored state of these documents, by uid."""
    rows = database.run("document_states", corpus=corpus, uids=list(uids))
    return {row["uid"]: DocumentState(**row) for row in rows}


def list_documents(database: Runner, *, corpus: str, most: int | None = None) -> list[dict[str, str | int]]:
    """Return the corpus's documents by title: uid, id, title, source, status, conversation (its id, or empty), chunks.

    With `most`, return no more than these.
    """
    rows = database.run("list_documents", corpus=corpus, most=sys.maxsize if most is None else most)
    return remaining(rows, "uid", "id", "status")


def documents_of_files(database: Runner, *, corpus: str, paths: Sequence[str]) -> dict[str, list[DocumentUid]]:
    """Return the uids of the documents from these files, by path. Files without documents are absent."""
    found: dict[str, list[DocumentUid]] = {}
    for row in database.run("documents_of_files", corpus=corpus, paths=list(paths)):
        found.setdefault(row["path"], []).append(row["uid"])
    return found


def put_documents(database: Runner, *, corpus: str, documents: Mapping[DocumentUid, Mapping[str, Scalar]]) -> None:
    """Write documents (properties by uid) as pending.

    Raises `ConflictError` if the corpus is not ready.
    """
    rows = [{"uid": uid, "properties": dict(documents[uid])} for uid in sorted(documents)]
    if rows and not database.run("put_documents", corpus=corpus, rows=rows):
        raise ConflictError(
            f"corpus {corpus!r} was deleted or is being imported: add the documents again when it is ready"
        )


def create_documents(database: Runner, *, corpus: str, rows: Iterable[Row]) -> None:
    """Create documents (uid and properties) in an empty corpus, done unless their properties say otherwise."""
    database.run("create_documents", corpus=corpus, rows=in_order(rows))


def create_chunks(database: Runner, *, corpus: str, rows: Iterable[Row], vectors: Iterable[Any]) -> None:
    """Create chunks of such documents, each after the chunk `before` it.

    One whose vector is None has failed.
    """
    database.run(
        "create_chunks",
        corpus=corpus,
        rows=[
            {**row, "vector": None if values is None else vector(values)}
            for row, values in zip(rows, vectors, strict=True)
        ],
    )


def put_chunks(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Mapping[str, Any] = NOTHING) -> None:
    """Write chunks (`chunk_rows`) of existing documents.

    Existing chunks keep their extraction and status. A chunk with a vector (by uid) becomes done.
    """
    database.run("put_chunks", corpus=corpus, rows=with_some_vectors(rows, vectors))


def link_chunks(database: Runner, *, corpus: str, documents: Sequence[DocumentUid]) -> None:
    """Link each chunk of these documents to the next one."""
    database.run("link_chunks", corpus=corpus, documents=sorted(documents))


def chunks_of_documents(
    database: Runner, *, corpus: str, documents: Sequence[DocumentUid]
) -> dict[DocumentUid, dict[str, str]]:
    """Return the statuses of chunks by uid, in order, by document.

    Documents without chunks are missing.
    """
    rows = database.run("chunks_of_documents", corpus=corpus, documents=list(documents))
    return {row["document"]: {chunk["uid"]: chunk["status"] for chunk in row["chunks"]} for row in rows}


def open_chunks(database: Runner, *, corpus: str, documents: Sequence[DocumentUid]) -> list[OpenChunk]:
    """Return the chunks of these documents that are not done."""
    return [OpenChunk(**row) for row in database.run("open_chunks", corpus=corpus, documents=list(documents))]


def failed_documents(database: Runner, *, corpus: str) -> list[DocumentUid]:
    """Return the uids of documents with a chunk whose extraction failed."""
    return [row["uid"] for row in database.run("failed_documents", corpus=corpus)]


def save_extractions(
    database: Runner, *, corpus: str, extractions: Mapping[str, tuple[str, str]], vectors: Vectors
) -> dict[str, str]:
    """Write extractions (text and JSON by uid) and vectors (in the same order), and return what is stored.

    If another run stored an extraction first, that one stays and is returned. Chunks that were deleted, or have
    another text now, are missing.
    """
    rows = [{"uid": uid, "text": text, "extraction": found} for uid, (text, found) in extractions.items()]
    stored = database.run("save_extractions", corpus=corpus, rows=rows_with_vectors(rows, vectors))
    return {row["uid"]: row["extraction"] for row in stored}


def embed_chunks(database: Runner, *, corpus: str, texts: Mapping[str, str], vectors: Vectors) -> None:
    """Write the vectors of the texts of chunks (by uid) that are indexed without a graph."""
    rows = [{"uid": uid, "text": text} for uid, text in texts.items()]
    database.run("embed_chunks", corpus=corpus, rows=rows_with_vectors(rows, vectors))


def fail_chunks(database: Runner, *, corpus: str, errors: Mapping[str, str]) -> None:
    """Record why the extraction of these chunks failed."""
    rows = [{"uid": uid, "error": error} for uid, error in errors.items()]
    database.run("fail_chunks", corpus=corpus, rows=rows)


def finish_documents(database: Runner, *, corpus: str, uids: Sequence[DocumentUid]) -> list[str]:
    """Mark documents as done or embedded if all their chunks are, and return their uids."""
    return [row["uid"] for row in database.run("finish_documents", corpus=corpus, uids=list(uids))]


def entities_of_chunks(
    database: Runner, *, corpus: str, chunks: Sequence[str]
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Return the uids of the entities and relations that these chunks support.

    The ends of those relations are among the entities.
    """
    row = database.run("entities_of_chunks", corpus=corpus, chunks=list(chunks))[0]
    return row["entities"], row["relations"]


def lock_chunks(database: Runner, *, corpus: str, uids: Sequence[str]) -> None:
    """Lock chunks, and the entities that they mention, until the transaction ends."""
    database.run("lock_chunks", corpus=corpus, uids=sorted(uids))


def chunk_texts(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, ChunkText]:
    """Return what these chunks hold now, by uid. Unknown ones are missing."""
    rows = database.run("chunk_texts", corpus=corpus, uids=list(uids))
    return {row["uid"]: ChunkText(**{**row, "messages": loaded_messages(row["messages"])}) for row in rows}


def grow_chunks(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Mapping[str, Any] = NOTHING) -> None:
    """Give chunks a text that begins with the one that they have. Extractions stay until the chunks are extracted."""
    database.run("grow_chunks", corpus=corpus, rows=with_some_vectors(rows, vectors))


def rewrite_chunks(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Mapping[str, Any] = NOTHING) -> None:
    """Give chunks another text, and remove the extraction and the vector of the old one."""
    database.run("rewrite_chunks", corpus=corpus, rows=with_some_vectors(rows, vectors))


def chunk_rows(chunks: Iterable[Chunk], *, corpus: str, language: str) -> list[Row]:
    """Return the properties of chunks of a corpus in this language."""
    return [_chunk_row(chunk, corpus, language) for chunk in chunks]


def _chunk_row(chunk: Chunk, corpus: str, language: str) -> Row:
    return {
        "uid": chunk.uid,
        "document": chunk.document,
        "position": chunk.position,
        "text": chunk.text,
        "stems": stored_stems(chunk.text, language),
        "tokens": chunk.tokens,
        "start": chunk.start,
        "end": chunk.end,
        "source_id": chunk.source_id,
        "messages": dumped_messages(chunk.messages),
        "layer_key": chunk_layer(corpus),
    }


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


def append_chunks(database: Runner, *, corpus: str, rows: Sequence[Row], vectors: Vectors, before: str | None) -> None:
    """Create chunks of a conversation with their vectors, after the chunk `before` (uid)."""
    uids = [before, *(row["uid"] for row in rows)]
    placed = [{**row, "before": last} for row, last in zip(rows, uids, strict=False)]
    database.run("append_chunks", corpus=corpus, rows=rows_with_vectors(placed, vectors))


def conversation_chunks(database: Runner, *, corpus: str, uid: DocumentUid) -> list[Chunk]:
    """Return all chunks of a conversation, in order."""
    return [_chunk(row["chunk"]) for row in database.run("conversation_chunks", corpus=corpus, uid=uid)]


def conversations_of_speaker(database: Runner, *, corpus: str, speaker: str) -> list[DocumentUid]:
    """Return the uids of conversations that may have a message of this speaker."""
    written = f'"speaker":{json.dumps(speaker, ensure_ascii=False)}'
    return [row["uid"] for row in database.run("conversations_of_speaker", corpus=corpus, speaker=written)]


def _chunk(row: Row) -> Chunk:
    return Chunk(**{**row, "messages": loaded_messages(row["messages"])})
