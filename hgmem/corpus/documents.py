"""Documents to index: batches of them are compared with what is stored, chunked, and written.

The cost estimate only compares and chunks; nothing is written then. Chunks of written documents are extracted later.
Chunks of conversations are rewritten in place: they keep their uids while their texts change. One that only grew keeps
everything that rests on it. What rested on the text of a changed or deleted chunk goes in the transaction that changes
the chunk, which also marks the entities and relations that it supported as needing recomputation. Each of them is then
recomputed once, without a model. If interrupted, the next run finds the marks and resumes.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.corpus.aggregation import lock_entities, refresh
from hgmem.corpus.guarded_writes import check_embedder, marking
from hgmem.corpus.paging import batches, filled
from hgmem.errors import UsageError
from hgmem.extraction.chunking import ChunkOptions, split
from hgmem.extraction.chunking import chunks as chunks_of
from hgmem.extraction.message_chunks import message_chunks, messages_digest, messages_in, words_of
from hgmem.graph.builds import ADDED, APPENDED, CHANGED, DELETED, mark_builds
from hgmem.graph.built import drop_dependents
from hgmem.graph.corpus import corpus_language
from hgmem.graph.database import Row, Transaction
from hgmem.graph.documents import (
    EMBEDDED,
    ChunkText,
    DocumentState,
    chunk_rows,
    chunk_texts,
    chunks_of_documents,
    conversation_chunks,
    document_states,
    document_uid,
    entities_of_chunks,
    grow_chunks,
    link_chunks,
    lock_chunks,
    put_chunks,
    put_documents,
    rewrite_chunks,
)
from hgmem.graph.values import NOTHING, Runner, to_json
from hgmem.services import Services, writing_language
from hgmem.settings import Settings
from hgmem.text.dates import date_of, type_of
from hgmem.text.identity import text_hash
from hgmem.text.segmentation import has_half_pair
from hgmem.text.stems import stored_stems
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk, DocumentUid, EntityUid, RelationUid
from hgmem.values.inputs import Document, Scalar, Skipped

DOCUMENTS = 64  # maximum documents per batch
CHARACTERS = 4_000_000  # a batch ends once it holds this much text
NEW_CHUNKS, REWRITTEN_CHUNKS, DELETED_CHUNKS = 1_000, 200, 2_000  # in a transaction
OF_MESSAGES = "messages/"  # begins `Document.chunking` of conversations, before their tokens per chunk


def bounded(
    corpus: str, items: Iterable[Document | Skipped], *, skipped: list[Skipped]
) -> Iterator[dict[DocumentUid, Document]]:
    """Yield batches of documents by uid, and append skipped items to `skipped`."""
    identified = _identified(corpus, items, skipped)
    yield from map(dict, filled(identified, size=DOCUMENTS, most=CHARACTERS, weight=lambda each: len(each[1].text)))


def _identified(
    corpus: str, items: Iterable[Document | Skipped], skipped: list[Skipped]
) -> Iterator[tuple[DocumentUid, Document]]:
    """Yield each document with its uid.

    Raises `UsageError` for a duplicate id: each run would overwrite one document with the other.
    """
    seen: set[DocumentUid] = set()
    for item in items:
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        identity = item.id or item.source
        if not identity:
            raise UsageError(f"document {item.title or item.text[:40]!r} has neither id nor source: give it an id")
        uid = document_uid(corpus, identity)
        if uid in seen:
            raise UsageError(f"document {identity!r} is a duplicate: document ids must be unique")
        seen.add(uid)
        check_characters(item)
        yield uid, item


def check_characters(document: Document) -> None:
    """Raise `UsageError` if the document's metadata holds an unpaired surrogate.

    Chunking checks the text.
    """
    described = [document.id, document.title, document.source, to_json(document.metadata)]
    if has_half_pair("".join(described)):
        known = document.id or document.source
        raise UsageError(f"document {known!r} has an unpaired surrogate in its metadata, such as \\ud83d: remove it")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDocument:
    """A document beside what is stored of it (None if nothing is).

    - `sha256` and `chunking`: the hash of its content, and how it is chunked.
    - `description`: the properties to store that describe it to people and filters.
    - `change`: what the builds of the corpus are told, empty if an earlier run has written the document as it is.
    - `same_content`: whether its content is stored as it is, with the same chunking.
    - `finished`: whether nothing is to be done.
    """

    uid: DocumentUid
    document: Document
    stored: DocumentState | None
    description: Mapping[str, Scalar]
    sha256: str
    chunking: str
    change: str
    same_content: bool
    finished: bool


def compared(services: Services, documents: Mapping[DocumentUid, Document], *, graph: bool) -> list[ComparedDocument]:
    """Return the documents (by uid), each with what is stored of it.

    With `graph`, one that was indexed without a graph is not finished.
    """
    states = document_states(services.database, corpus=services.corpus, uids=list(documents))
    complete = ("done",) if graph else ("done", EMBEDDED)
    return [
        _compared(services, each, states.get(uid_), uid_=uid_, complete=complete) for uid_, each in documents.items()
    ]


def _compared(
    services: Services, document: Document, stored: DocumentState | None, *, uid_: DocumentUid, complete: Container[str]
) -> ComparedDocument:
    description = description_of(document)
    sha256, chunking = digest_of(document, services.settings)
    same_content = stored is not None and (stored.sha256, stored.chunking) == (sha256, chunking)
    same = same_content and stored is not None and stored.description == description
    return ComparedDocument(
        uid=uid_,
        document=document,
        stored=stored,
        description=description,
        sha256=sha256,
        chunking=chunking,
        change=ADDED if stored is None else "" if same else CHANGED,
        same_content=same_content,
        finished=same and stored is not None and stored.status in complete,
    )


def digest_of(document: Document, settings: Settings) -> tuple[str, str]:
    """Return the hash of a document's content, and how it is chunked."""
    if document.messages:
        return messages_digest(document.text, document.messages), f"{OF_MESSAGES}{settings.chunk_tokens}"
    return text_hash(document.text), str(chunk_options(settings))


def description_of(document: Document) -> dict[str, Scalar]:
    """Return the stored properties that describe a document to people and filters."""
    return {
        "id": document.id or document.source,
        "title": document.title,
        "source": document.source,
        "metadata": to_json(document.metadata),
    }


def derived(document: Document, *, language: str, text: str = "") -> dict[str, Scalar]:
    """Return the stored properties that follow from a document's title, metadata and text: stems, date and type.

    A document that came in chunks has the `text` of the first. Of a conversation, each message has a time of its own.
    """
    text = "" if document.messages else document.text or text
    return {
        "stems": stored_stems(document.title, language),
        "date": date_of(document.title, text, document.metadata, language=language),
        "type": type_of(document.metadata),
    }


def chunk_options(settings: Settings) -> ChunkOptions:
    """Return how documents that are no conversations are chunked."""
    return ChunkOptions(tokens=settings.chunk_tokens, overlap=settings.chunk_overlap, restart=settings.chunk_restart)


def cut(document: Document, settings: Settings, *, corpus: str, uid_: DocumentUid) -> tuple[Chunk, ...]:
    """Return the chunks of a document with this uid."""
    if document.messages:
        return message_chunks(document, corpus=corpus, uid_=uid_, tokens=settings.chunk_tokens)
    return chunks_of(split(document.text, chunk_options(settings)), corpus=corpus, document=uid_, title=document.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedDocument:
    """A compared document with its chunks.

    - `statuses`: the statuses of the stored chunks by uid.
    - `stale`: the stored chunks (uids) that the document no longer has.
    - `grown` and `changed`: chunks of conversations, which alone keep their uids while their texts change. They begin
      with the stored text, or have a different one.
    - `change`: what the builds of the corpus are told, which is another change for a conversation that only grew.
    """

    compared: ComparedDocument
    chunks: tuple[Chunk, ...]
    statuses: Mapping[str, str]
    stale: Sequence[str]
    grown: Sequence[Chunk]
    changed: Sequence[Chunk]
    change: str


def chunked(services: Services, compared: ComparedDocument) -> ChunkedDocument:
    """Return the document with its chunks, beside those that are stored."""
    document, corpus, stored = compared.document, services.corpus, compared.stored
    chunks = cut(document, services.settings, corpus=corpus, uid_=compared.uid)
    statuses = chunks_of_documents(services.database, corpus=corpus, documents=[compared.uid]).get(compared.uid, {})
    stale = sorted(statuses.keys() - {chunk.uid for chunk in chunks})
    grown, changed = _rewritten(services, chunks) if document.messages else ([], [])
    same_description = stored is not None and stored.description == compared.description
    grew = document.messages and same_description and not changed and not stale
    return ChunkedDocument(
        compared=compared,
        chunks=chunks,
        statuses=statuses,
        stale=stale,
        grown=grown,
        changed=changed,
        change=APPENDED if grew else compared.change,
    )


def _rewritten(services: Services, chunks: Sequence[Chunk]) -> tuple[list[Chunk], list[Chunk]]:
    """Return which of the chunks are stored with another text or other messages: grown and changed ones."""
    grown: list[Chunk] = []
    changed: list[Chunk] = []
    for batch in batches(chunks):
        texts = chunk_texts(services.database, corpus=services.corpus, uids=[chunk.uid for chunk in batch])
        for chunk in batch:
            stored = texts.get(chunk.uid)
            if stored is None or (stored.text, stored.messages) == (chunk.text, chunk.messages):
                continue
            (grown if _has_grown(stored, chunk) else changed).append(chunk)
    return grown, changed


def _has_grown(stored: ChunkText, chunk: Chunk) -> bool:
    """Return whether a chunk begins with the text and the messages that are stored."""
    return chunk.text.startswith(stored.text) and chunk.messages[: len(stored.messages)] == stored.messages


def replaced_messages(services: Services, compared: ComparedDocument) -> dict[str, int]:
    """Return by the document's id how many stored messages it no longer has.

    The result is empty if its content is not stored as another one, or if a conversation only grew.
    """
    document = compared.document
    if compared.stored is None or compared.stored.sha256 in ("", compared.sha256):
        return {}
    chunks = (
        conversation_chunks(services.database, corpus=services.corpus, uid=compared.uid) if document.messages else []
    )
    kept = {(place.id, document.text[place.start : place.end]) for place in document.messages}
    gone = sum((id_, words_of(parts, id_)) not in kept for id_, (_, parts) in messages_in(chunks).items())
    return {document.id or document.source: gone} if gone or not document.messages else {}


def write_description(services: Services, document: ComparedDocument) -> None:
    """Write the title, source and metadata of a document whose content is stored as it is."""
    writer: Runner = marking(services, document.change) if document.change else services.database
    language = corpus_language(services.database, corpus=services.corpus)
    properties = {**document.description, **derived(document.document, language=language)}
    put_documents(writer, corpus=services.corpus, documents={document.uid: properties})


def write_document(services: Services, chunked: ChunkedDocument) -> None:
    """Write a document and its chunks, and delete the chunks that it no longer has.

    Builds are told at once, and again when all chunks are written: a build may have been made in between.
    """
    database, corpus, compared = services.database, services.corpus, chunked.compared
    writer = marking(services, chunked.change)
    language = writing_language(services, [compared.document.text])
    described = {**compared.description, **derived(compared.document, language=language)}
    properties = {**described, "chunking": compared.chunking, "sha256": ""}
    put_documents(writer, corpus=corpus, documents={compared.uid: properties})
    if chunked.stale:
        drop_chunks(services, chunked.stale, change=CHANGED)
    for chunks in batches(chunked.grown, size=REWRITTEN_CHUNKS):
        database.write(_grow_chunks, services, chunks)
    for chunks in batches(chunked.changed, size=REWRITTEN_CHUNKS):
        refresh(services, *database.write(change_chunks, services, chunks))
    for chunks in batches(chunked.chunks, size=NEW_CHUNKS):
        put_chunks(database, corpus=corpus, rows=chunk_rows(chunks, corpus=corpus, language=language))
    link_chunks(database, corpus=corpus, documents=[compared.uid])
    messages = len(compared.document.messages) or None
    writer.run("seal_document", corpus=corpus, uid=compared.uid, sha256=compared.sha256, messages=messages)


def _grow_chunks(transaction: Transaction, services: Services, chunks: Sequence[Chunk]) -> None:
    """Write texts that begin with the stored ones. Vectors are left to the run that indexes the chunks."""
    check_embedder(transaction, services)
    mark_builds(transaction, corpus=services.corpus, change=APPENDED)
    grow_chunks(transaction, corpus=services.corpus, rows=_rows(transaction, services.corpus, chunks))


def change_chunks(
    transaction: Transaction, services: Services, chunks: Sequence[Chunk], *, vectors: Mapping[str, Any] = NOTHING
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Give chunks another text, and delete what rested on the old one.

    Returns the entities and relations to refresh. A chunk with a vector (by uid) is indexed without a graph.
    """
    corpus, uids = services.corpus, [chunk.uid for chunk in chunks]
    check_embedder(transaction, services)
    entities, relations = withdraw_support(transaction, corpus=corpus, kept=dict.fromkeys(uids, ((), ())))
    drop_dependents(transaction, corpus=corpus, uids=uids)
    mark_builds(transaction, corpus=corpus, change=CHANGED)
    _move_citations(transaction, corpus, chunks)
    rewrite_chunks(transaction, corpus=corpus, rows=_rows(transaction, corpus, chunks), vectors=vectors)
    return entities, relations


def _rows(transaction: Transaction, corpus: str, chunks: Sequence[Chunk]) -> list[Row]:
    return chunk_rows(chunks, corpus=corpus, language=corpus_language(transaction, corpus=corpus))


def withdraw_support(
    transaction: Transaction, *, corpus: str, kept: Mapping[str, tuple[Iterable[EntityUid], Iterable[RelationUid]]]
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Take back the support that chunks gave, but of the entities and relations that `kept` names by chunk.

    Returns the entities and relations that have to be refreshed, and marks them.
    """
    entities, relations = _mark_supported(transaction, corpus, list(kept))
    rows = [{"uid": uid, "entities": list(some), "relations": list(joined)} for uid, (some, joined) in kept.items()]
    transaction.run("take_back", corpus=corpus, rows=rows, relations=relations)
    return entities, relations


def _mark_supported(
    transaction: Transaction, corpus: str, chunks: Sequence[str]
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Lock chunks (uids) and what they support, and mark the latter as needing recomputation."""
    lock_chunks(transaction, corpus=corpus, uids=chunks)
    entities, relations = entities_of_chunks(transaction, corpus=corpus, chunks=chunks)
    lock_entities(transaction, corpus=corpus, uids=entities)
    transaction.run("mark_stale", corpus=corpus, entities=sorted(entities), relations=sorted(relations))
    return entities, relations


def drop_chunks(services: Services, chunks: Sequence[str], *, change: str = DELETED) -> None:
    """Delete chunks (uids), and recompute the entities and relations that they supported.

    `change` is what the builds of the corpus are told.
    """
    entities: dict[EntityUid, None] = {}
    relations: dict[RelationUid, None] = {}
    for batch in batches(chunks, size=DELETED_CHUNKS):
        touched, joined = services.database.write(drop, services, batch, change=change)
        entities |= dict.fromkeys(touched)
        relations |= dict.fromkeys(joined)
    refresh(services, entities, relations)


def drop(
    transaction: Transaction, services: Services, chunks: Sequence[str], *, change: str
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Delete chunks (uids) in a transaction, and return the entities and relations to refresh."""
    check_embedder(transaction, services)
    entities, relations = _mark_supported(transaction, services.corpus, chunks)
    drop_dependents(transaction, corpus=services.corpus, uids=chunks)
    mark_builds(transaction, corpus=services.corpus, change=change)
    transaction.run("delete_chunks", corpus=services.corpus, uids=chunks)
    return entities, relations


def _move_citations(transaction: Transaction, corpus: str, chunks: Sequence[Chunk]) -> None:
    """Withdraw citations whose quotes are gone, and write where the other quotes stand now."""
    by_uid = {chunk.uid: chunk for chunk in chunks}
    stored = chunk_texts(transaction, corpus=corpus, uids=list(by_uid))
    gone, moved = [], []
    for row in transaction.run("citations_of_chunks", corpus=corpus, uids=list(by_uid)):
        chunk, before = by_uid[row["chunk"]], stored[row["chunk"]]
        at = _quoted_at(row, before, chunk)
        if at is None:
            gone.append(row["uid"])
        elif before.start is not None:
            start = before.start + at  # the chunk's own start is written later, and moves its citations
            moved.append({"uid": row["uid"], "start": start, "end": start + len(row["quote"])})
    if gone:
        transaction.run("withdraw_citations", corpus=corpus, uids=gone)
    if moved:
        transaction.run("move_citations", corpus=corpus, rows=moved)


def _quoted_at(row: Row, before: ChunkText, chunk: Chunk) -> int | None:
    """Return where a quote begins in the chunk's new text, None if it or its message is gone.

    If it stands there several times, the place nearest to the old one in its message is meant.
    """
    quote, start = row["quote"], (row["start"] or 0) - (before.start or 0)
    if not row["message"]:
        return _nearest(chunk.text, quote, near=start)
    old, new = _place(before.messages, row["message"]), _place(chunk.messages, row["message"])
    if new is None:
        return None
    found = _nearest(chunk.text[new.start : new.end], quote, near=start - (old.start if old else 0))
    return None if found is None else new.start + found


def _place(places: Sequence[MessagePlace], message: str) -> MessagePlace | None:
    return next((place for place in places if place.id == message), None)


def _nearest(text: str, quote: str, *, near: int) -> int | None:
    places = []
    at = text.find(quote)
    while at >= 0:
        places.append(at)
        at = text.find(quote, at + 1)
    return min(places, key=lambda place: abs(place - near), default=None)
