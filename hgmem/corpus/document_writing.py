"""Write new and changed documents with their unextracted chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hgmem.corpus.aggregation import batches
from hgmem.corpus.chunk_rewriting import rewrite, rewrites_of
from hgmem.corpus.deletion import drop_chunks, finish_interrupted
from hgmem.corpus.guarded_writes import marking
from hgmem.errors import UsageError
from hgmem.extraction.chunking import ChunkOptions, split
from hgmem.extraction.chunking import chunks as chunks_of
from hgmem.extraction.message_chunks import message_chunks, messages_digest, messages_in, words_of
from hgmem.graph.builds import ADDED, APPENDED, CHANGED
from hgmem.graph.conversations import conversation_chunks
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
OF_MESSAGES = "messages/"  # begins `Document.chunking` of conversations, before their tokens per chunk


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
        check_characters(item)
        yield document_uid, item


def check_characters(document: Document) -> None:
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
    services: Services, row: CorpusRow, documents: Mapping[str, Document], *, graph: bool, replaced: dict[str, int]
) -> dict[str, str]:
    """Write new and changed documents (by uid), and return the unfinished ones, each with what has changed.

    Those whose text was another are noted in `replaced`, with how many messages went.

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
            described = {document_uid: description_of(document)}
            writer: Runner = marking(services, change) if change else services.database
            put_documents(writer, corpus=services.corpus, documents=described)
        else:
            if state is not None and state.sha256 not in ("", document_digest(document)):
                replaced |= _replaced(services, document_uid, document)
            unfinished[document_uid] = _write(services, document_uid, document, state=state)
    if any(not state.sha256 for state in states.values()):  # an earlier write or delete was interrupted
        finish_interrupted(services)
    return unfinished


def _replaced(services: Services, document_uid: str, document: Document) -> dict[str, int]:
    """Return how many stored messages a changed document no longer has, by its id, nothing if a conversation grew."""
    stored = (
        conversation_chunks(services.database, corpus=services.corpus, uid=document_uid) if document.messages else []
    )
    kept = {(place.id, document.text[place.start : place.end]) for place in document.messages}
    gone = sum((id_, words_of(held, id_)) not in kept for id_, (_, held) in messages_in(stored).items())
    return {document.id or document.source: gone} if gone or not document.messages else {}


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
    return "" if _same_chunks(services, state, document) and _described(state) == description_of(document) else CHANGED


def document_chunks(services: Services, document_uid: str, document: Document) -> tuple[Chunk, ...]:
    """Return the document's chunks."""
    if document.messages:
        tokens = services.settings.chunk_tokens
        return message_chunks(document, corpus=services.corpus, uid_=document_uid, tokens=tokens)
    pieces = split(document.text, _chunk_options(services))
    return chunks_of(pieces, corpus=services.corpus, document=document_uid, title=document.title)


def _write(services: Services, document_uid: str, document: Document, *, state: DocumentState | None) -> str:
    """Write a document and its chunks, and delete the chunks that its text no longer has.

    Builds are told at once, and again when all chunks are written: a build may have been made in between. Returns what
    they are told, which is another change for a conversation that only grew.
    """
    database, corpus, change = services.database, services.corpus, CHANGED if state else ADDED
    chunks = document_chunks(services, document_uid, document)
    stale = _stale(services, document_uid, chunks)
    rewrites = rewrites_of(services, chunks) if document.messages else None
    if rewrites and state and _described(state) == description_of(document) and not rewrites.changed and not stale:
        change = APPENDED
    writer = marking(services, change)
    properties = {**description_of(document), "chunking": _chunking(services, document), "sha256": ""}
    put_documents(writer, corpus=corpus, documents={document_uid: properties})
    if stale:
        drop_chunks(services, stale, change=CHANGED)
    if rewrites:
        rewrite(services, rewrites)
    for rows in batches(chunks, size=ROWS):
        put_chunks(database, corpus=corpus, chunks=rows)
    link_chunks(database, corpus=corpus, documents=[document_uid])
    digest, messages = document_digest(document), len(document.messages) or None
    seal_document(writer, corpus=corpus, uid=document_uid, sha256=digest, messages=messages)
    return change


def _stale(services: Services, document_uid: str, chunks: Sequence[Chunk]) -> list[str]:
    stored = chunks_of_documents(services.database, corpus=services.corpus, documents=[document_uid])
    return sorted(stored.get(document_uid, {}).keys() - {chunk.uid for chunk in chunks})


def _described(state: DocumentState) -> dict[str, Scalar]:
    return {"title": state.title, "source": state.source, "metadata": state.metadata}


def description_of(document: Document) -> dict[str, Scalar]:
    """Return the stored properties that describe a document to people and filters."""
    return {"title": document.title, "source": document.source, "metadata": to_json(document.metadata)}


def _same_chunks(services: Services, state: DocumentState, document: Document) -> bool:
    return (state.sha256, state.chunking) == (document_digest(document), _chunking(services, document))


def document_digest(document: Document) -> str:
    """Return the hash of a document's text, and of who said what when in a conversation."""
    return messages_digest(document.text, document.messages) if document.messages else text_hash(document.text)


def _chunking(services: Services, document: Document) -> str:
    if document.messages:
        return f"{OF_MESSAGES}{services.settings.chunk_tokens}"
    return str(_chunk_options(services))


def _chunk_options(services: Services) -> ChunkOptions:
    given = services.settings
    return ChunkOptions(tokens=given.chunk_tokens, overlap=given.chunk_overlap, restart=given.chunk_restart)
