"""Write new and changed documents with their chunks, which are extracted later, and delete chunks that are gone.

Chunks of conversations are rewritten in place: they keep their uids while their texts change. One that only grew keeps
everything that rests on it. What rested on the text of a changed or deleted chunk goes in the transaction that changes
the chunk, which also marks the entities and relations that it supported as needing recomputation. Each of them is then
recomputed once, without a model. If interrupted, the next run finds the marks and resumes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hgmem.corpus.aggregation import refresh
from hgmem.corpus.document_comparison import ChunkedDocument, ComparedDocument
from hgmem.corpus.guarded_writes import check_embedder, marking
from hgmem.corpus.paging import batches
from hgmem.graph.builds import APPENDED, CHANGED, DELETED, mark_builds
from hgmem.graph.built import drop_dependents
from hgmem.graph.database import Row, Transaction
from hgmem.graph.documents import (
    ChunkText,
    chunk_texts,
    entities_of_chunks,
    grow_chunks,
    link_chunks,
    lock_chunks,
    put_chunks,
    put_documents,
    rewrite_chunks,
)
from hgmem.graph.entities import lock_entities
from hgmem.graph.values import NOTHING, Runner
from hgmem.services import Services
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk, EntityUid, RelationUid

NEW_CHUNKS, REWRITTEN_CHUNKS, DELETED_CHUNKS = 1_000, 200, 2_000  # in a transaction


def write_description(services: Services, document: ComparedDocument) -> None:
    """Write the title, source and metadata of a document whose content is stored as it is."""
    writer: Runner = marking(services, document.change) if document.change else services.database
    put_documents(writer, corpus=services.corpus, documents={document.uid: document.description})


def write_document(services: Services, chunked: ChunkedDocument) -> None:
    """Write a document and its chunks, and delete the chunks that it no longer has.

    Builds are told at once, and again when all chunks are written: a build may have been made in between.
    """
    database, corpus, compared = services.database, services.corpus, chunked.compared
    writer = marking(services, chunked.change)
    properties = {**compared.description, "chunking": compared.chunking, "sha256": ""}
    put_documents(writer, corpus=corpus, documents={compared.uid: properties})
    if chunked.stale:
        drop_chunks(services, chunked.stale, change=CHANGED)
    for chunks in batches(chunked.rewrites.grown, size=REWRITTEN_CHUNKS):
        database.write(_grow_chunks, services, chunks)
    for chunks in batches(chunked.rewrites.changed, size=REWRITTEN_CHUNKS):
        refresh(services, *database.write(change_chunks, services, chunks))
    for chunks in batches(chunked.chunks, size=NEW_CHUNKS):
        put_chunks(database, corpus=corpus, chunks=chunks)
    link_chunks(database, corpus=corpus, documents=[compared.uid])
    messages = len(compared.document.messages) or None
    writer.run("seal_document", corpus=corpus, uid=compared.uid, sha256=compared.sha256, messages=messages)


def _grow_chunks(transaction: Transaction, services: Services, chunks: Sequence[Chunk]) -> None:
    """Write texts that begin with the stored ones. Vectors are left to the run that indexes the chunks."""
    check_embedder(transaction, services)
    mark_builds(transaction, corpus=services.corpus, change=APPENDED)
    grow_chunks(transaction, corpus=services.corpus, chunks=chunks)


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
    rewrite_chunks(transaction, corpus=corpus, chunks=chunks, vectors=vectors)
    return entities, relations


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
