"""Indexing: documents → chunks → extractions → entities and relations, with the state of each chunk in Neo4j.

What is done is never done again: a document whose text and cutting are the same is not written, and a chunk whose
extraction is stored is not extracted. Killed at any moment, the next run goes on from there.
"""

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.chunk import chunks as chunks_of
from hgmem.chunk import split
from hgmem.corpus.delete import drop_chunks
from hgmem.corpus.fold import batches, fold
from hgmem.errors import ModelError, UsageError
from hgmem.extract import Extract, Extraction
from hgmem.graph.documents import (
    OpenChunk,
    chunks_of_document,
    document_states,
    fail_chunks,
    finish_chunks,
    finish_documents,
    link_chunks,
    open_chunks,
    put_chunks,
    put_document,
    save_extractions,
    unlink_chunks,
)
from hgmem.graph.values import to_json
from hgmem.identity import text_hash, uid
from hgmem.load import Skipped
from hgmem.model import Chunk, Document
from hgmem.services import Services, open_corpus

DOCUMENTS = 64  # documents written before their chunks are extracted
GROUP = 64  # chunks extracted, embedded and saved together
ROWS = 1_000  # chunks a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far indexing is: chunks done of those known so far."""

    done: int
    total: int
    document: str


@dataclass(slots=True, kw_only=True)
class IndexReport:
    """What an indexing run did; `failed` counts chunks whose extraction failed."""

    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


Report: TypeAlias = Callable[[Progress], None]


def index(services: Services, items: Iterable[Document | Skipped], *, report: Report = lambda _: None) -> IndexReport:
    """Return what was done to add documents to the corpus; `report` hears of it as it goes.

    What was skipped on the way in is passed on in the report.
    """
    done = IndexReport()
    opened = False
    for batch in batches(_documents(items, done), size=DOCUMENTS):
        opened = opened or bool(open_corpus(services))
        known = {_document_uid(services.corpus, document): document for document in batch}
        states = document_states(services.database, corpus=services.corpus, uids=list(known))
        open_documents = []
        for document_uid, document in known.items():
            state = states.get(document_uid)
            same = state is not None and (state.sha256, state.chunking) == (_hash(document), _chunking(services))
            if state is not None and same and state.status == "done":
                done.unchanged += 1
                continue
            if not same:
                _write(services, document_uid, document)
            open_documents.append(document_uid)
        done.documents += len(open_documents)
        _extract(services, open_documents, done, report)
    return done


def _documents(items: Iterable[Document | Skipped], done: IndexReport) -> Iterator[Document]:
    for item in items:
        if isinstance(item, Skipped):
            done.skipped.append(item)
        else:
            yield item


def _write(services: Services, document_uid: str, document: Document) -> None:
    """Write a document and its chunks; chunks that the text no longer has go, with what they alone supported."""
    database, corpus = services.database, services.corpus
    pieces = split(document.text, tokens=services.settings.chunk_tokens, overlap=services.settings.chunk_overlap)
    chunks = chunks_of(pieces, corpus=corpus, document=document_uid, title=document.title)
    properties = {
        "title": document.title,
        "source": document.source,
        "metadata": to_json(document.metadata),
        "chunking": _chunking(services),
    }
    put_document(database, corpus=corpus, uid=document_uid, properties={**properties, "sha256": ""})
    _drop_stale(services, document_uid, chunks)
    for rows in batches(chunks, size=ROWS):
        put_chunks(database, corpus=corpus, document=document_uid, chunks=rows)
    unlink_chunks(database, corpus=corpus, document=document_uid)
    link_chunks(database, corpus=corpus, document=document_uid)
    put_document(database, corpus=corpus, uid=document_uid, properties={**properties, "sha256": _hash(document)})


def _drop_stale(services: Services, document_uid: str, chunks: Sequence[Chunk]) -> None:
    stored = chunks_of_document(services.database, corpus=services.corpus, document=document_uid)
    stale = stored.keys() - {chunk.uid for chunk in chunks}
    if stale:
        drop_chunks(services, sorted(stale))


def _extract(services: Services, documents: Sequence[str], done: IndexReport, report: Report) -> None:
    """Extract, embed, save and fold the open chunks of these documents."""
    database, corpus = services.database, services.corpus
    waiting = open_chunks(database, corpus=corpus, documents=documents)
    extracted = {chunk.uid: Extraction.model_validate_json(chunk.extraction) for chunk in waiting if chunk.extraction}
    finished, failed = len(extracted), 0
    groups = batches((chunk for chunk in waiting if not chunk.extraction), size=GROUP)
    for group, (found, errors) in _extractions(services, groups):
        extracted |= _save(services, group, found)
        if errors:
            fail_chunks(database, corpus=corpus, errors=errors)
            failed += len(errors)
            done.errors += [f"chunk {chunk} failed: {error}" for chunk, error in errors.items()]
        finished += len(group)
        report(Progress(done=done.chunks + finished, total=done.chunks + len(waiting), document=group[-1].title))
    if extracted:
        fold(services, extractions=extracted)
        finish_chunks(database, corpus=corpus, uids=sorted(extracted))
    if documents:
        finish_documents(database, corpus=corpus, uids=documents)
    done.chunks += len(extracted)
    done.failed += failed


def _extractions(
    services: Services, groups: Iterable[Sequence[OpenChunk]]
) -> Iterator[tuple[Sequence[OpenChunk], tuple[dict[str, Extraction], dict[str, str]]]]:
    """Yield each group with its extractions and its errors, both by uid; a group's model calls run side by side."""
    with ThreadPoolExecutor(services.settings.workers, thread_name_prefix="hgmem-extract") as pool:
        for group in groups:
            pending = [pool.submit(contextvars.copy_context().run, _reply, services, chunk) for chunk in group]
            found: dict[str, Extraction] = {}
            errors: dict[str, str] = {}
            for chunk, future in zip(group, pending, strict=True):
                try:
                    found[chunk.uid] = future.result()
                except ModelError as error:
                    errors[chunk.uid] = str(error)
            yield group, (found, errors)


def _reply(services: Services, chunk: OpenChunk) -> Extraction:
    return services.reply(Extract(text=chunk.text, title=chunk.title))


def _save(services: Services, group: Sequence[OpenChunk], found: Mapping[str, Extraction]) -> dict[str, Extraction]:
    texts = {chunk.uid: chunk.text for chunk in group if chunk.uid in found}
    if texts:
        vectors = services.embed(list(texts.values()), kind="document")
        saved = {chunk: found[chunk].model_dump_json() for chunk in texts}
        save_extractions(services.database, corpus=services.corpus, extractions=saved, vectors=vectors)
    return {chunk: found[chunk] for chunk in texts}


def _document_uid(corpus: str, document: Document) -> str:
    identity = document.id or document.source
    if not identity:
        raise UsageError(f"document {document.title or document.text[:40]!r} has neither id nor source: give it an id")
    return uid(corpus, "document", identity)


def _hash(document: Document) -> str:
    return text_hash(document.text)


def _chunking(services: Services) -> str:
    return f"{services.settings.chunk_tokens}/{services.settings.chunk_overlap}"
