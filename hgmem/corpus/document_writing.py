"""Write new and changed documents with their unextracted chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hgmem.corpus.aggregation import batches
from hgmem.corpus.deletion import drop_chunks, finish_interrupted
from hgmem.corpus.guarded_writes import marking
from hgmem.errors import UsageError
from hgmem.extraction.chunking import ChunkOptions, split
from hgmem.extraction.chunking import chunks as chunks_of
from hgmem.graph.builds import ADDED, CHANGED
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.documents import (
    EMBEDDED,
    DocumentState,
    chunks_of_documents,
    document_states,
    link_chunks,
    put_chunks,
    put_documents,
    seal_document,
)
from hgmem.graph.values import Runner, to_json
from hgmem.services import Services, check_dimensions
from hgmem.text.identity import text_hash, uid
from hgmem.text.segmentation import has_half_pair
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document, Scalar, Skipped

DOCUMENTS = 64  # maximum documents per batch
CHARACTERS = 4_000_000  # a batch ends once it holds this much text
ROWS = 1_000  # chunks per transaction


def bounded(
    corpus: str, items: Iterable[Document | Skipped], *, skipped: list[Skipped]
) -> Iterator[dict[str, Document]]:
    """Yield batches of documents by uid, and append skipped items to `skipped`."""
    batch: dict[str, Document] = {}
    characters = 0
    for document_uid, document in _identified(corpus, items, skipped):
        batch[document_uid] = document
        characters += len(document.text)
        if len(batch) == DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, characters = {}, 0
    if batch:
        yield batch


def _identified(
    corpus: str, items: Iterable[Document | Skipped], skipped: list[Skipped]
) -> Iterator[tuple[str, Document]]:
    """Yield each document with its uid.

    Raises `UsageError` for a duplicate id: each run would overwrite one document with the other.
    """
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        document_uid = _document_uid(corpus, item)
        if document_uid in seen:
            raise UsageError(f"document {item.id or item.source!r} is a duplicate: document ids must be unique")
        seen.add(document_uid)
        _check_characters(item)
        yield document_uid, item


def _check_characters(document: Document) -> None:
    """Raise `UsageError` if the document's metadata holds an unpaired surrogate.

    Chunking checks the text.
    """
    described = [document.id, document.title, document.source, to_json(document.metadata)]
    if has_half_pair("".join(described)):
        known = document.id or document.source
        raise UsageError(f"document {known!r} has an unpaired surrogate in its metadata, such as \\ud83d: remove it")


def _document_uid(corpus: str, document: Document) -> str:
    identity = document.id or document.source
    if not identity:
        raise UsageError(f"document {document.title or document.text[:40]!r} has neither id nor source: give it an id")
    return uid(corpus, "document", identity)


def write_changed(
    services: Services, row: CorpusRow, documents: Mapping[str, Document], *, graph: bool = True
) -> dict[str, str]:
    """Write new and changed documents (by uid), and return the unfinished ones, each with what has changed.

    With `graph`, documents that were indexed without one are unfinished. Nothing has changed in one that an earlier
    run has written as it is.
    """
    states = document_states(services.database, corpus=services.corpus, uids=list(documents))
    unfinished: dict[str, str] = {}
    for document_uid, document in documents.items():
        state = states.get(document_uid)
        if finished(services, state, document, graph=graph):
            continue
        check_dimensions(services, row)  # loads the embedder, so only if there is work
        change = unfinished[document_uid] = _change(services, state, document)
        if state is not None and _same_chunks(services, state, document):
            described = {document_uid: _properties(document)}
            writer: Runner = marking(services, change) if change else services.database
            put_documents(writer, corpus=services.corpus, documents=described)
        else:
            _write(services, document_uid, document, change=change)
    if any(not state.sha256 for state in states.values()):  # an earlier write or delete was interrupted
        finish_interrupted(services)
    return unfinished


def finished(services: Services, state: DocumentState | None, document: Document, *, graph: bool = True) -> bool:
    """Return whether the stored document is complete and unchanged. With `graph`, it has to have one."""
    return (
        state is not None
        and (state.status == "done" or (state.status == EMBEDDED and not graph))
        and not _change(services, state, document)
    )


def _change(services: Services, state: DocumentState | None, document: Document) -> str:
    """Return what has changed since this state was stored, or an empty text."""
    if state is None:
        return ADDED
    described = {"title": state.title, "source": state.source, "metadata": state.metadata}
    return "" if _same_chunks(services, state, document) and described == _properties(document) else CHANGED


def document_chunks(services: Services, document_uid: str, document: Document) -> tuple[Chunk, ...]:
    """Return the document's chunks."""
    pieces = split(document.text, _chunk_options(services))
    return chunks_of(pieces, corpus=services.corpus, document=document_uid, title=document.title)


def _write(services: Services, document_uid: str, document: Document, *, change: str) -> None:
    """Write a document and its chunks, and delete the chunks that its text no longer has.

    Builds are told at once, and again when all chunks are written: a build may have been made in between.
    """
    database, corpus, writer = services.database, services.corpus, marking(services, change)
    chunks = document_chunks(services, document_uid, document)
    properties = {**_properties(document), "chunking": str(_chunk_options(services)), "sha256": ""}
    put_documents(writer, corpus=corpus, documents={document_uid: properties})
    _drop_stale(services, document_uid, chunks)
    for rows in batches(chunks, size=ROWS):
        put_chunks(database, corpus=corpus, chunks=rows)
    link_chunks(database, corpus=corpus, documents=[document_uid])
    seal_document(writer, corpus=corpus, uid=document_uid, sha256=text_hash(document.text))


def _drop_stale(services: Services, document_uid: str, chunks: Sequence[Chunk]) -> None:
    stored = chunks_of_documents(services.database, corpus=services.corpus, documents=[document_uid])
    stale = stored.get(document_uid, {}).keys() - {chunk.uid for chunk in chunks}
    if stale:
        drop_chunks(services, sorted(stale), change=CHANGED)


def _properties(document: Document) -> dict[str, Scalar]:
    return {"title": document.title, "source": document.source, "metadata": to_json(document.metadata)}


def _same_chunks(services: Services, state: DocumentState, document: Document) -> bool:
    return (state.sha256, state.chunking) == (text_hash(document.text), str(_chunk_options(services)))


def _chunk_options(services: Services) -> ChunkOptions:
    given = services.settings
    return ChunkOptions(tokens=given.chunk_tokens, overlap=given.chunk_overlap, restart=given.chunk_restart)
