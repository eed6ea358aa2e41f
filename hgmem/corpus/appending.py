"""Append messages to a conversation, which are indexed at once: the last chunk grows, or new chunks begin.

A writer reads the end of the conversation, prepares chunks and vectors, and writes them in one transaction if nobody
has written to the conversation since. Otherwise it starts again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hgmem.corpus.deletion import similar_documents
from hgmem.corpus.documents import OF_MESSAGES, check_characters, derived, description_of
from hgmem.corpus.guarded_writes import OvertakenError, attempts, check_embedder
from hgmem.corpus.indexing import extract_open
from hgmem.corpus.paging import batches
from hgmem.errors import ConflictError, DocumentError, UsageError
from hgmem.extraction.message_chunks import continued_chunks, messages_digest, messages_in, words_of
from hgmem.graph.builds import ADDED, APPENDED, mark_builds
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    ConversationEnd,
    append_chunks,
    chunk_rows,
    chunk_texts,
    chunks_with_messages,
    conversation_chunks,
    conversation_end,
    document_uid,
    extend_conversation,
    grow_chunks,
)
from hgmem.models.embedding import Vectors
from hgmem.services import Services, check_dimensions, known_corpus, open_corpus, writing_language
from hgmem.sources.conversations.rendering import document_of, rendered
from hgmem.text.identity import text_hash, uid
from hgmem.values.conversations import Conversation, Message
from hgmem.values.graph_elements import Chunk, DocumentUid
from hgmem.values.inputs import Document, Scalar
from hgmem.values.reports import AppendReport, Progress, Report

MESSAGES = 1_000  # messages a transaction
ATTEMPTS = 60  # at a transaction, each after another writer's


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extension:
    """What a transaction writes: the properties of the document, its last chunk if it grows, and new chunks.

    `messages` counts those that it appends, and `language` is that of the corpus.
    """

    end: ConversationEnd | None
    properties: Mapping[str, Scalar]
    messages: int
    chunks: tuple[Chunk, ...]
    language: str

    @property
    def grown(self) -> int:
        """The number of chunks that are stored already: one or none."""
        last = self.end.chunk if self.end else None
        return 1 if last and self.chunks and self.chunks[0].uid == last.uid else 0


def append(
    services: Services,
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    graph: bool = False,
    report: Report = lambda _: None,
) -> AppendReport:
    """Append messages to the conversation of this id, and return what was done.

    A new conversation is created with its title and metadata. Messages that it has are skipped, and `DocumentError`
    names one that it has with another content. With `graph`, whatever of the conversation is open is extracted.
    Raises `ConflictError` if other writers were faster `ATTEMPTS` times.
    """
    check_characters(document_of(replace(conversation, messages=())))
    check_dimensions(services, open_corpus(services))
    document = document_uid(services.corpus, conversation.id)
    end = conversation_end(services.database, corpus=services.corpus, uid=document)
    if end is None and not messages:
        raise _unknown(services, conversation.id)
    rendered(conversation.id, messages, number=end.number + 1 if end else 1)  # a bad one refuses all, before any write
    done = AppendReport()
    for some in batches(messages, size=MESSAGES):
        extension = _append(services, document, conversation, some)
        done.created |= extension.end is None
        done.messages += extension.messages
        done.known += len(some) - extension.messages
        done.chunks += len(extension.chunks)
        report(Progress(done=done.chunks, total=done.chunks, document=conversation.title or conversation.id))
    if graph:
        extracted = extract_open(services, document, report=report)
        done.chunks, done.failed, done.errors = extracted.chunks, extracted.failed, extracted.errors
    return done


def _append(
    services: Services, document: DocumentUid, conversation: Conversation, messages: Sequence[Message]
) -> _Extension:
    """Append messages in one transaction, and return what was written."""
    for _ in attempts(ATTEMPTS):
        end = conversation_end(services.database, corpus=services.corpus, uid=document)
        if end is not None and not end.sha256:
            continue  # it is being added
        extension = _extension(services, document, (conversation, messages), end=end)
        if not extension.chunks:
            return extension
        vectors = services.embed([chunk.text for chunk in extension.chunks], kind="document")
        try:
            services.database.write(_write, services, document, (extension, vectors))
        except OvertakenError:
            continue
        return extension
    raise ConflictError(
        f"conversation {conversation.id!r} is being written by others: append the messages again; if adding it was "
        "interrupted, add it first"
    )


def _write(
    transaction: Transaction, services: Services, document: DocumentUid, prepared: tuple[_Extension, Vectors]
) -> None:
    """Write an extension.

    Raises `OvertakenError` if the conversation is no longer as it was read.
    """
    corpus, (extension, vectors) = services.corpus, prepared
    end, grown = extension.end, extension.grown
    check_embedder(transaction, services)
    if not extend_conversation(transaction, corpus=corpus, uid=document, end=end, properties=extension.properties):
        raise OvertakenError
    mark_builds(transaction, corpus=corpus, change=APPENDED if end else ADDED)
    rows = chunk_rows(extension.chunks, corpus=corpus, language=extension.language)
    if grown:
        last = extension.chunks[0]
        grow_chunks(transaction, corpus=corpus, rows=rows[:1], vectors={last.uid: vectors[0]})
    append_chunks(
        transaction,
        corpus=corpus,
        rows=rows[grown:],
        vectors=vectors[grown:],
        before=end.chunk.uid if end and end.chunk else None,
    )


def _extension(
    services: Services,
    document: DocumentUid,
    appended: tuple[Conversation, Sequence[Message]],
    *,
    end: ConversationEnd | None,
) -> _Extension:
    """Return what has to be written to append the messages that the conversation does not have."""
    conversation, messages = appended
    last = end.chunk if end else None
    tokens = _chunk_tokens(services, conversation, end)
    number = end.number if end else 0
    fresh, known = _fresh(services, document, appended, number=number) if end else (messages, set())
    text, places = rendered(conversation.id, fresh, number=number + 1, known=known)
    if last is not None:
        text = f"\n{text}"
        places = tuple(replace(place, start=place.start + 1, end=place.end + 1) for place in places)
    appended_document = Document(id=conversation.id, text=text, messages=places)
    language = writing_language(services, [text])
    empty = document_of(replace(conversation, messages=()))
    digest = messages_digest(text, places, before=end.sha256 if end and last else "")
    properties = {
        "sha256": digest,
        "message_number": number + len(places),
        "chunking": f"{OF_MESSAGES}{tokens}",
        **({} if end else {**description_of(empty), **derived(empty, language=language)}),
    }
    chunks = (
        continued_chunks(appended_document, corpus=services.corpus, uid_=document, tokens=tokens, last=last)
        if places
        else ()
    )
    chunks = _unlike_stored(services, chunks, last=last, digest=digest)
    return _Extension(end=end, properties=properties, messages=len(places), chunks=chunks, language=language)


def _unlike_stored(
    services: Services, chunks: tuple[Chunk, ...], *, last: Chunk | None, digest: str
) -> tuple[Chunk, ...]:
    """Return the chunks, with other uids for those that a stored one has.

    A chunk whose first message was forgotten keeps its uid, and the message may come again.
    """
    fresh = [chunk.uid for chunk in chunks if last is not None and chunk.uid != last.uid]
    taken = chunk_texts(services.database, corpus=services.corpus, uids=fresh) if fresh else {}
    return tuple(
        replace(chunk, uid=uid(services.corpus, "chunk", chunk.uid, digest)) if chunk.uid in taken else chunk
        for chunk in chunks
    )


def _chunk_tokens(services: Services, conversation: Conversation, end: ConversationEnd | None) -> int:
    """Return how many tokens the conversation's chunks have: those that it was begun with.

    Raises `UsageError` if the document is no conversation.
    """
    if end is None or (end.chunk is None and end.sha256 == text_hash("")):
        return services.settings.chunk_tokens
    if end.chunking is None or not end.chunking.startswith(OF_MESSAGES):
        raise UsageError(
            f"document {conversation.id!r} of corpus {services.corpus!r} is not a conversation: choose another id"
        )
    return int(end.chunking.removeprefix(OF_MESSAGES))


def _fresh(
    services: Services, document: DocumentUid, appended: tuple[Conversation, Sequence[Message]], *, number: int
) -> tuple[list[Message], set[str]]:
    """Return the messages that the conversation does not have, and ids that these must not have.

    Raises `DocumentError` for a message that it has with another content.
    """
    conversation, messages = appended
    given = [message.id for message in messages if message.id is not None]
    numbers = [str(number + place) for place in range(1, len(messages) + 1)]
    ids = {*given, *numbers}
    chunks = chunks_with_messages(services.database, corpus=services.corpus, uid=document, ids=ids)
    stored = {place.id: place for chunk in chunks for place in chunk.messages if place.id in ids}
    fresh = []
    for message in messages:
        if message.id not in stored:
            fresh.append(message)
            continue
        text, (place,) = rendered(conversation.id, [message])
        known = stored[message.id]
        content = (known.speaker, known.time, dict(known.metadata), words_of(chunks, message.id))
        if content != (place.speaker, place.time, dict(place.metadata), text[place.start : place.end]):
            raise DocumentError(
                f"message {message.id!r} of conversation {conversation.id!r} is stored with another content: give the "
                "new message an id of its own, or add the whole conversation again to change it"
            )
    return fresh, set(stored)


def check_conversation(services: Services, conversation: str) -> None:
    """Raise `UsageError` if there is no such conversation."""
    document = document_uid(known_corpus(services).corpus, conversation)
    if conversation_end(services.database, corpus=services.corpus, uid=document) is None:
        raise _unknown(services, conversation)


def _unknown(services: Services, conversation: str) -> UsageError:
    near = similar_documents(services.database, conversation, corpus=services.corpus, conversations=True)
    return UsageError(
        f"corpus {services.corpus!r} has no conversation {conversation!r}{near}: `hgmem status --corpus "
        f"{services.corpus}` lists their ids, and appending messages creates one unless it must exist"
    )


def stored_messages(services: Services, conversation: str) -> tuple[Message, ...]:
    """Return the messages of a conversation in order.

    Runs of blanks and line breaks in their texts have become one space. Raises `UsageError` if there is no such
    conversation.
    """
    document = document_uid(known_corpus(services).corpus, conversation)
    chunks = conversation_chunks(services.database, corpus=services.corpus, uid=document)
    if not chunks:
        check_conversation(services, conversation)
    return tuple(
        Message(
            speaker=place.speaker,
            text=words_of(parts, id_),
            time=place.time or None,
            id=id_,
            metadata=dict(place.metadata) or None,
        )
        for id_, (place, parts) in messages_in(chunks).items()
    )
