"""Take documents in batches, compare each with what is stored of it, and chunk it.

Indexing writes what is found here, and the cost estimate only counts it. Nothing is written here.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hgmem.corpus.paging import batches, filled
from hgmem.errors import UsageError
from hgmem.extraction.chunking import ChunkOptions, split
from hgmem.extraction.chunking import chunks as chunks_of
from hgmem.extraction.message_chunks import message_chunks, messages_digest, messages_in, words_of
from hgmem.graph.builds import ADDED, APPENDED, CHANGED
from hgmem.graph.conversations import conversation_chunks
from hgmem.graph.documents import (
    EMBEDDED,
    ChunkText,
    DocumentState,
    chunk_texts,
    chunks_of_documents,
    document_states,
    document_uid,
)
from hgmem.graph.values import to_json
from hgmem.services import Services
from hgmem.text.identity import text_hash
from hgmem.text.segmentation import has_half_pair
from hgmem.values.graph_elements import Chunk, DocumentUid
from hgmem.values.inputs import Document, Scalar, Skipped

DOCUMENTS = 64  # maximum documents per batch
CHARACTERS = 4_000_000  # a batch ends once it holds this much text
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
        _compared(services, document, states.get(uid_), uid_=uid_, complete=complete)
        for uid_, document in documents.items()
    ]


def _compared(
    services: Services, document: Document, stored: DocumentState | None, *, uid_: DocumentUid, complete: Container[str]
) -> ComparedDocument:
    sha256, chunking, description = _digest(document), _chunking(services, document), description_of(document)
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


def description_of(document: Document) -> dict[str, Scalar]:
    """Return the stored properties that describe a document to people and filters."""
    return {"title": document.title, "source": document.source, "metadata": to_json(document.metadata)}


def _digest(document: Document) -> str:
    """Return the hash of a document's text, and of who said what when in a conversation."""
    return messages_digest(document.text, document.messages) if document.messages else text_hash(document.text)


def _chunking(services: Services, document: Document) -> str:
    if document.messages:
        return f"{OF_MESSAGES}{services.settings.chunk_tokens}"
    return str(_chunk_options(services))


def _chunk_options(services: Services) -> ChunkOptions:
    given = services.settings
    return ChunkOptions(tokens=given.chunk_tokens, overlap=given.chunk_overlap, restart=given.chunk_restart)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrites:
    """Chunks with the uid of a stored one and another text: the stored one's and more, or a different one."""

    grown: tuple[Chunk, ...] = ()
    changed: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedDocument:
    """A compared document with its chunks.

    - `statuses`: the statuses of the stored chunks by uid.
    - `stale`: the stored chunks (uids) that the document no longer has.
    - `rewrites`: chunks of conversations, which alone keep their uids while their texts change.
    - `change`: what the builds of the corpus are told, which is another change for a conversation that only grew.
    """

    compared: ComparedDocument
    chunks: tuple[Chunk, ...]
    statuses: Mapping[str, str]
    stale: Sequence[str]
    rewrites: Rewrites
    change: str


def chunked(services: Services, compared: ComparedDocument) -> ChunkedDocument:
    """Return the document with its chunks, beside those that are stored."""
    document, corpus, stored = compared.document, services.corpus, compared.stored
    if document.messages:
        chunks = message_chunks(document, corpus=corpus, uid_=compared.uid, tokens=services.settings.chunk_tokens)
    else:
        pieces = split(document.text, _chunk_options(services))
        chunks = chunks_of(pieces, corpus=corpus, document=compared.uid, title=document.title)
    statuses = chunks_of_documents(services.database, corpus=corpus, documents=[compared.uid]).get(compared.uid, {})
    stale = sorted(statuses.keys() - {chunk.uid for chunk in chunks})
    rewrites = _rewrites(services, chunks) if document.messages else Rewrites()
    same_description = stored is not None and stored.description == compared.description
    grew = document.messages and same_description and not rewrites.changed and not stale
    return ChunkedDocument(
        compared=compared,
        chunks=chunks,
        statuses=statuses,
        stale=stale,
        rewrites=rewrites,
        change=APPENDED if grew else compared.change,
    )


def _rewrites(services: Services, chunks: Sequence[Chunk]) -> Rewrites:
    """Return those of the chunks that are stored with another text or other messages."""
    grown: list[Chunk] = []
    changed: list[Chunk] = []
    for batch in batches(chunks):
        texts = chunk_texts(services.database, corpus=services.corpus, uids=[chunk.uid for chunk in batch])
        for chunk in batch:
            stored = texts.get(chunk.uid)
            if stored is None or (stored.text, stored.messages) == (chunk.text, chunk.messages):
                continue
            (grown if _has_grown(stored, chunk) else changed).append(chunk)
    return Rewrites(grown=tuple(grown), changed=tuple(changed))


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
