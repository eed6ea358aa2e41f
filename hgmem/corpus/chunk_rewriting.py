"""Rewrite chunks of conversations in place, which keep their uids while their texts change.

A chunk that only grew keeps everything that rests on it. What rested on the text of a changed one goes, in the
transaction that changes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.corpus.aggregation import batches
from hgmem.corpus.deletion import refresh
from hgmem.corpus.guarded_writes import check_embedder
from hgmem.graph.builds import APPENDED, CHANGED, mark_builds
from hgmem.graph.built import drop_dependents
from hgmem.graph.database import Row, Transaction
from hgmem.graph.documents import (
    ChunkText,
    chunk_texts,
    citations_of_chunks,
    entities_of_chunks,
    grow_chunks,
    lock_chunks,
    move_citations,
    rewrite_chunks,
    withdraw_citations,
)
from hgmem.graph.entities import lock_entities, mark_stale, take_back
from hgmem.graph.values import NOTHING
from hgmem.services import Services
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk

CHUNKS = 200  # chunks a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrites:
    """Chunks with the uid of a stored one and another text: the stored one's and more, or a different one."""

    grown: tuple[Chunk, ...] = ()
    changed: tuple[Chunk, ...] = ()


def rewrites_of(services: Services, chunks: Sequence[Chunk]) -> Rewrites:
    """Return those of the chunks that are stored with another text or other messages."""
    grown: list[Chunk] = []
    changed: list[Chunk] = []
    for some in batches(chunks):
        stored = chunk_texts(services.database, corpus=services.corpus, uids=[chunk.uid for chunk in some])
        for chunk in some:
            held = stored.get(chunk.uid)
            if held is None or (held.text, held.messages) == (chunk.text, chunk.messages):
                continue
            (grown if has_grown(held, chunk) else changed).append(chunk)
    return Rewrites(grown=tuple(grown), changed=tuple(changed))


def has_grown(held: ChunkText, chunk: Chunk) -> bool:
    """Return whether a chunk begins with the text and the messages that are stored."""
    return chunk.text.startswith(held.text) and chunk.messages[: len(held.messages)] == held.messages


def rewrite(services: Services, rewrites: Rewrites) -> None:
    """Write the texts. Vectors and extractions are left to the run that indexes the chunks."""
    for some in batches(rewrites.grown, size=CHUNKS):
        services.database.write(_grow, services, some)
    for some in batches(rewrites.changed, size=CHUNKS):
        entities, relations = services.database.write(change_chunks, services, some)
        refresh(services, entities, relations)


def _grow(transaction: Transaction, services: Services, chunks: Sequence[Chunk]) -> None:
    check_embedder(transaction, services)
    mark_builds(transaction, corpus=services.corpus, change=APPENDED)
    grow_chunks(transaction, corpus=services.corpus, chunks=chunks)


def change_chunks(
    transaction: Transaction, services: Services, chunks: Sequence[Chunk], *, vectors: Mapping[str, Any] = NOTHING
) -> tuple[list[str], list[str]]:
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
    transaction: Transaction, *, corpus: str, kept: Mapping[str, tuple[Iterable[str], Iterable[str]]]
) -> tuple[list[str], list[str]]:
    """Take back the support that chunks gave, but of the entities and relations that `kept` names by chunk.

    Returns the entities and relations that have to be refreshed, and marks them.
    """
    uids = list(kept)
    lock_chunks(transaction, corpus=corpus, uids=uids)
    entities, relations = entities_of_chunks(transaction, corpus=corpus, chunks=uids)
    lock_entities(transaction, corpus=corpus, uids=entities)
    mark_stale(transaction, corpus=corpus, entities=entities, relations=relations)
    rows = [{"uid": uid, "entities": list(some), "relations": list(joined)} for uid, (some, joined) in kept.items()]
    take_back(transaction, corpus=corpus, rows=rows, relations=relations)
    return entities, relations


def _move_citations(transaction: Transaction, corpus: str, chunks: Sequence[Chunk]) -> None:
    """Withdraw citations whose quotes are gone, and write where the other quotes stand now."""
    by_uid = {chunk.uid: chunk for chunk in chunks}
    held = chunk_texts(transaction, corpus=corpus, uids=list(by_uid))
    gone, moved = [], []
    for row in citations_of_chunks(transaction, corpus=corpus, uids=list(by_uid)):
        chunk, before = by_uid[row["chunk"]], held[row["chunk"]]
        at = _quoted_at(row, before, chunk)
        if at is None:
            gone.append(row["uid"])
        elif before.start is not None:
            start = before.start + at  # the chunk's own start is written later, and moves its citations
            moved.append({"uid": row["uid"], "start": start, "end": start + len(row["quote"])})
    if gone:
        withdraw_citations(transaction, corpus=corpus, uids=gone)
    if moved:
        move_citations(transaction, corpus=corpus, rows=moved)


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
