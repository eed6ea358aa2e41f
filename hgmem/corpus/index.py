"""Indexing: documents → chunks → extractions → entities and relations, with the state of each chunk in Neo4j.

What is done is never done again: a document whose text and cutting are the same is not written, and a chunk whose
extraction is stored is not extracted. Killed at any moment, the next run goes on from there.
"""

import contextvars
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.chunk import chunks as chunks_of
from hgmem.chunk import split
from hgmem.corpus.delete import drop_chunks
from hgmem.corpus.fold import batches, embed_rest, fold
from hgmem.errors import ConflictError, ModelError, UsageError
from hgmem.extract import Extract, Extraction
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.documents import (
    DocumentState,
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
    seal_document,
    unlink_chunks,
)
from hgmem.graph.values import to_json
from hgmem.identity import text_hash, uid
from hgmem.inputs import Document, Scalar, Skipped
from hgmem.model import Chunk
from hgmem.services import Services, check_dimensions, open_corpus

DOCUMENTS = 64  # documents written before their chunks are extracted
CHARACTERS = 4_000_000  # or fewer documents, of so much text together
GROUP = 64  # chunks extracted, embedded and saved together
ROWS = 1_000  # chunks a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far indexing is: so many done of those known so far, of chunks, then of entities and relations."""

    done: int
    total: int
    document: str = ""
    unit: Literal["chunks", "entities and relations"] = "chunks"


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
    row: CorpusRow | None = None
    for batch in _bounded(_documents(services.corpus, items, done)):
        row = row or open_corpus(services)
        open_documents = _write_changed(services, row, dict(batch))
        done.unchanged += len(batch) - len(open_documents)
        done.documents += len(open_documents)
        _extract(services, open_documents, done, report)
    return done


def _bounded(documents: Iterable[tuple[str, Document]]) -> Iterator[list[tuple[str, Document]]]:
    """Yield the documents in batches of so many, or of so much text."""
    batch: list[tuple[str, Document]] = []
    characters = 0
    for document_uid, document in documents:
        batch.append((document_uid, document))
        characters += len(document.text)
        if len(batch) == DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _documents(corpus: str, items: Iterable[Document | Skipped], done: IndexReport) -> Iterator[tuple[str, Document]]:
    """Yield each document with its uid; two of one identity would undo each other at every run."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Skipped):
            done.skipped.append(item)
            continue
        document_uid = _document_uid(corpus, item)
        if document_uid in seen:
            raise UsageError(f"document {item.id or item.source!r} is there twice: ids are what documents are known by")
        seen.add(document_uid)
        yield document_uid, item


def _write_changed(services: Services, row: CorpusRow, documents: Mapping[str, Document]) -> list[str]:
    """Return which of the documents (by uid) are not done, those that are new or changed written."""
    states = document_states(services.database, corpus=services.corpus, uids=list(documents))
    unfinished = []
    for document_uid, document in documents.items():
        state = states.get(document_uid)
        same = state is not None and (state.sha256, state.chunking) == (_hash(document), _chunking(services))
        if state is not None and same and state.status == "done" and _described(state, document):
            continue
        check_dimensions(services, row)  # not before there is something to do: it loads the embedder
        if same:
            put_document(services.database, corpus=services.corpus, uid=document_uid, properties=_properties(document))
        else:
            _write(services, document_uid, document)
        unfinished.append(document_uid)
    if any(not state.sha256 for state in states.values()):  # writing or deleting one was cut short before
        embed_rest(services)
    return unfinished


def _write(services: Services, document_uid: str, document: Document) -> None:
    """Write a document and its chunks; chunks that the text no longer has go, with what they alone supported."""
    database, corpus = services.database, services.corpus
    pieces = split(document.text, tokens=services.settings.chunk_tokens, overlap=services.settings.chunk_overlap)
    chunks = chunks_of(pieces, corpus=corpus, document=document_uid, title=document.title)
    properties = {**_properties(document), "chunking": _chunking(services), "sha256": ""}
    put_document(database, corpus=corpus, uid=document_uid, properties=properties)
    _drop_stale(services, document_uid, chunks)
    for rows in batches(chunks, size=ROWS):
        put_chunks(database, corpus=corpus, document=document_uid, chunks=rows)
    unlink_chunks(database, corpus=corpus, document=document_uid)
    link_chunks(database, corpus=corpus, document=document_uid)
    seal_document(database, corpus=corpus, uid=document_uid, sha256=_hash(document))


def _properties(document: Document) -> dict[str, Scalar]:
    return {"title": document.title, "source": document.source, "metadata": to_json(document.metadata)}


def _described(state: DocumentState, document: Document) -> bool:
    return {"title": state.title, "source": state.source, "metadata": state.metadata} == _properties(document)


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
        fold(services, extractions=extracted, report=lambda done, total: report(folded(done, total)))
        finish_chunks(database, corpus=corpus, uids=sorted(extracted))
    ended = finish_documents(database, corpus=corpus, uids=documents) if documents else []
    if not failed and len(ended) < len(documents):
        raise ConflictError(
            f"{len(documents) - len(ended)} documents of corpus {corpus!r} were deleted or taken over while they were "
            "indexed: index them again"
        )
    done.chunks += len(extracted)
    done.failed += failed


def folded(done: int, total: int) -> Progress:
    """Return the progress of entities and relations."""
    return Progress(done=done, total=total, unit="entities and relations")


def _extractions(
    services: Services, groups: Iterable[Sequence[OpenChunk]]
) -> Iterator[tuple[Sequence[OpenChunk], tuple[dict[str, Extraction], dict[str, str]]]]:
    """Yield each group with its extractions and its errors, both by uid; a group's model calls run side by side.

    What ends the work early, Ctrl-C say, is raised after the calls that had finished by then were yielded.
    """
    with ThreadPoolExecutor(services.settings.workers, thread_name_prefix="hgmem-extract") as pool:
        for group in groups:
            pending = {
                chunk.uid: pool.submit(contextvars.copy_context().run, _reply, services, chunk) for chunk in group
            }
            stop = _wait(pool, pending.values())
            found: dict[str, Extraction] = {}
            errors: dict[str, str] = {}
            for chunk, future in pending.items():
                if future.cancelled() or future.exception():
                    continue
                reply = future.result()
                if isinstance(reply, ModelError):
                    errors[chunk] = str(reply)
                else:
                    found[chunk] = reply
            yield group, (found, errors)
            if stop:
                raise stop


def _wait(pool: ThreadPoolExecutor, pending: Collection[Future[Extraction | ModelError]]) -> BaseException | None:
    """Return once all calls are done; or, the rest of them called off, what ended the work early."""
    stop: BaseException | None = None
    try:
        finished, _ = wait(pending, return_when=FIRST_EXCEPTION)
        stop = next((error for future in finished if (error := future.exception())), None)
    except KeyboardInterrupt as error:
        stop = error
    if stop:
        pool.shutdown(cancel_futures=True)
    return stop


def _reply(services: Services, chunk: OpenChunk) -> Extraction | ModelError:
    try:
        return services.reply(Extract(text=chunk.text, title=chunk.title))
    except ModelError as error:
        return error


def _save(services: Services, group: Sequence[OpenChunk], found: Mapping[str, Extraction]) -> dict[str, Extraction]:
    """Return what is stored of these chunks now: another run may have been first, or deleted some."""
    texts = {chunk.uid: chunk.text for chunk in group if chunk.uid in found}
    if not texts:
        return {}
    vectors = services.embed(list(texts.values()), kind="document")
    extractions = {chunk: found[chunk].model_dump_json() for chunk in texts}
    stored = save_extractions(services.database, corpus=services.corpus, extractions=extractions, vectors=vectors)
    return {chunk: Extraction.model_validate_json(text) for chunk, text in stored.items()}


def _document_uid(corpus: str, document: Document) -> str:
    identity = document.id or document.source
    if not identity:
        raise UsageError(f"document {document.title or document.text[:40]!r} has neither id nor source: give it an id")
    return uid(corpus, "document", identity)


def _hash(document: Document) -> str:
    return text_hash(document.text)


def _chunking(services: Services) -> str:
    return f"{services.settings.chunk_tokens}/{services.settings.chunk_overlap}"
