"""Documents into the corpus, with their chunks not yet extracted; what is there and the same is not written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hgmem.chunk import Cutting, split
from hgmem.chunk import chunks as chunks_of
from hgmem.corpus.delete import drop_chunks, finish_rest
from hgmem.corpus.fold import batches
from hgmem.errors import UsageError
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.documents import (
    DocumentState,
    chunks_of_documents,
    document_states,
    link_chunks,
    put_chunks,
    put_documents,
    seal_document,
)
from hgmem.graph.values import to_json
from hgmem.identity import text_hash, uid
from hgmem.inputs import Document, Scalar, Skipped
from hgmem.model import Chunk
from hgmem.services import Services, check_dimensions
from hgmem.text import has_half_pair

DOCUMENTS = 64  # documents written together
CHARACTERS = 4_000_000  # or fewer documents, of so much text together
ROWS = 1_000  # chunks a transaction


def bounded(
    corpus: str, items: Iterable[Document | Skipped], *, skipped: list[Skipped]
) -> Iterator[dict[str, Document]]:
    """Yield the documents by uid, so many or so much text at a time; what was skipped goes to the list."""
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
    """Yield each document with its uid; two of one identity would undo each other at every run."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Skipped):
            skipped.append(item)
            continue
        document_uid = _document_uid(corpus, item)
        if document_uid in seen:
            raise UsageError(f"document {item.id or item.source!r} is there twice: ids are what documents are known by")
        seen.add(document_uid)
        _check_characters(item)
        yield document_uid, item


def _check_characters(document: Document) -> None:
    """Raise if what describes the document holds half a character; its text is looked at when it is cut."""
    described = [document.id, document.title, document.source, to_json(document.metadata)]
    if has_half_pair("".join(described)):
        known = document.id or document.source
        raise UsageError(f"document {known!r} is described with half a surrogate pair, such as \\ud83d alone")


def _document_uid(corpus: str, document: Document) -> str:
    identity = document.id or document.source
    if not identity:
        raise UsageError(f"document {document.title or document.text[:40]!r} has neither id nor source: give it an id")
    return uid(corpus, "document", identity)


def write_changed(services: Services, row: CorpusRow, documents: Mapping[str, Document]) -> list[str]:
    """Return which of the documents (by uid) are not done, those that are new or changed written."""
    states = document_states(services.database, corpus=services.corpus, uids=list(documents))
    unfinished = []
    for document_uid, document in documents.items():
        state = states.get(document_uid)
        if finished(services, state, document):
            continue
        check_dimensions(services, row)  # not before there is something to do: it loads the embedder
        if state is not None and _cut_alike(services, state, document):
            described = {document_uid: _properties(document)}
            put_documents(services.database, corpus=services.corpus, documents=described)
        else:
            _write(services, document_uid, document)
        unfinished.append(document_uid)
    if any(not state.sha256 for state in states.values()):  # writing or deleting one was cut short before
        finish_rest(services)
    return unfinished


def finished(services: Services, state: DocumentState | None, document: Document) -> bool:
    """Whether what is stored of the document is all of it, and what it is now."""
    return (
        state is not None
        and state.status == "done"
        and _cut_alike(services, state, document)
        and {"title": state.title, "source": state.source, "metadata": state.metadata} == _properties(document)
    )


def cut(services: Services, document_uid: str, document: Document) -> tuple[Chunk, ...]:
    """Return the document's chunks."""
    pieces = split(document.text, _cutting(services))
    return chunks_of(pieces, corpus=services.corpus, document=document_uid, title=document.title)


def _write(services: Services, document_uid: str, document: Document) -> None:
    """Write a document and its chunks; chunks that the text no longer has go, with what they alone supported."""
    database, corpus = services.database, services.corpus
    chunks = cut(services, document_uid, document)
    properties = {**_properties(document), "chunking": str(_cutting(services)), "sha256": ""}
    put_documents(database, corpus=corpus, documents={document_uid: properties})
    _drop_stale(services, document_uid, chunks)
    for rows in batches(chunks, size=ROWS):
        put_chunks(database, corpus=corpus, chunks=rows)
    link_chunks(database, corpus=corpus, documents=[document_uid])
    seal_document(database, corpus=corpus, uid=document_uid, sha256=text_hash(document.text))


def _drop_stale(services: Services, document_uid: str, chunks: Sequence[Chunk]) -> None:
    stored = chunks_of_documents(services.database, corpus=services.corpus, documents=[document_uid])
    stale = stored.get(document_uid, {}).keys() - {chunk.uid for chunk in chunks}
    if stale:
        drop_chunks(services, sorted(stale))


def _properties(document: Document) -> dict[str, Scalar]:
    return {"title": document.title, "source": document.source, "metadata": to_json(document.metadata)}


def _cut_alike(services: Services, state: DocumentState, document: Document) -> bool:
    return (state.sha256, state.chunking) == (text_hash(document.text), str(_cutting(services)))


def _cutting(services: Services) -> Cutting:
    given = services.settings
    return Cutting(tokens=given.chunk_tokens, overlap=given.chunk_overlap, restart=given.chunk_restart)
