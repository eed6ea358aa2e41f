"""Delete documents, a corpus or messages, with everything that nothing else supports.

Forgetting messages takes their words from the chunks, and with them everything that rested on these. A conversation is
read, and changed in one transaction if nobody has written to it since. Its chunks keep their uids. No model is called:
chunks that lost words are indexed without a graph until they are extracted anew.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeAlias

from hgmem.corpus.aggregation import finish_interrupted, refresh
from hgmem.corpus.documents import change_chunks, drop, drop_chunks
from hgmem.corpus.guarded_writes import OvertakenError, attempts, check_embedder
from hgmem.corpus.paging import batches
from hgmem.corpus.pruning import PAGE, Age, prune_memories
from hgmem.errors import ConflictError, NotFoundError, UsageError
from hgmem.extraction.message_chunks import messages_digest
from hgmem.graph.builds import DELETED
from hgmem.graph.built import resting
from hgmem.graph.corpus import count_corpus, delete_corpus_contents, delete_corpus_node, leased_memories, mark_corpus
from hgmem.graph.database import Database, Transaction
from hgmem.graph.documents import (
    ConversationEnd,
    DocumentState,
    chunks_of_documents,
    conversation_chunks,
    conversation_end,
    conversations_of_speaker,
    document_states,
    document_uid,
    documents_of_files,
    entities_of_chunks,
    extend_conversation,
    link_chunks,
    list_documents,
)
from hgmem.services import Services, build_files, check_dimensions, known_corpus, readable_corpus
from hgmem.text.language import SIMILAR, counted, similar_ones
from hgmem.text.segmentation import collapse
from hgmem.text.tokens import count
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk, DocumentUid, EntityUid, RelationUid
from hgmem.values.inputs import Scalar
from hgmem.values.reports import Forgotten

Name: TypeAlias = str | os.PathLike[str]
Named: TypeAlias = Name | Iterable[Name]

DOCUMENTS = 1_000  # documents a transaction
COMPARED = 10_000  # documents whose names are compared with one that is unknown
ATTEMPTS = 20  # at a transaction, each after another writer's


def delete_documents(services: Services, names: Named) -> int:
    """Delete the documents that `names` stand for (`named_documents`), and return their number."""
    row = readable_corpus(services)
    database, corpus = services.database, services.corpus
    states = named_documents(services, names)
    check_dimensions(services, row)
    uids = [state.uid for state in states]
    for batch in batches(uids, size=DOCUMENTS):
        database.run("unseal_documents", corpus=corpus, uids=batch)  # indexed anew, should this be cut short
    found = chunks_of_documents(database, corpus=corpus, documents=uids)
    drop_chunks(services, [chunk for stored in found.values() for chunk in stored])
    if not all(state.sha256 for state in states):  # writing or deleting one was cut short before
        finish_interrupted(services)
    for batch in batches(uids, size=DOCUMENTS):
        database.run("delete_document_nodes", corpus=corpus, uids=batch)
    return len(uids)


def named_documents(services: Services, names: Named) -> list[DocumentState]:
    """Return the documents that `names` stand for, each once.

    A name is the uid, the id or the path of one document. A path that is no document's stands for every document of
    that file, such as the rows of a table. Raises `UsageError` for a name that stands for nothing.
    """
    database, corpus = services.database, services.corpus
    given = [names] if isinstance(names, str | os.PathLike) else names
    paths = {name: os.path.abspath(name) for name in (str(os.fspath(each)) for each in given)}
    meant = {name: (DocumentUid(name), *(document_uid(corpus, each) for each in (name, paths[name]))) for name in paths}
    states = document_states(database, corpus=corpus, uids=[each for uids in meant.values() for each in uids])
    found = {name: [each for each in uids if each in states][:1] for name, uids in meant.items()}
    if files := [paths[name] for name, uids in found.items() if not uids]:
        rows = documents_of_files(database, corpus=corpus, paths=files)
        found = {name: uids or rows.get(paths[name], []) for name, uids in found.items()}
        states |= document_states(database, corpus=corpus, uids=[each for uids in rows.values() for each in uids])
    if missing := [name for name, uids in found.items() if not uids]:
        near = similar_documents(database, missing[0], corpus=corpus)
        raise NotFoundError(
            f"corpus {corpus!r} has no document {missing[0]!r}, and none from a file of that name{near}: `hgmem status "
            f"--corpus {corpus}` lists its documents"
        )
    named = dict.fromkeys(each for uids in found.values() for each in uids)
    return [states[each] for each in named if each in states]  # but those that another run deleted meanwhile


def similar_documents(database: Database, name: str, *, corpus: str, conversations: bool = False) -> str:
    """Return the ids of documents whose id or title holds the name or is like it, as a part of a sentence.

    With `conversations`, those of conversations alone.
    """
    wanted = os.path.basename(name.rstrip("/")).casefold()
    ids: dict[str, dict[str, None]] = {}
    for row in list_documents(database, corpus=corpus, most=COMPARED):
        if conversations and not row["conversation"]:
            continue
        id_ = str(row["id"])
        for known in (str(row["title"]), os.path.basename(id_), id_):
            ids.setdefault(known.casefold(), {})[id_] = None
    names = [known for known in ids if wanted and wanted in known] or get_close_matches(wanted, ids, n=SIMILAR)
    return similar_ones(list(dict.fromkeys(id_ for known in names for id_ in ids[known])))


def delete_corpus(services: Services) -> int:
    """Delete the corpus with its memories, whatever its status, and return the number of its documents."""
    documents = count_corpus(services.database, corpus=known_corpus(services)).documents
    shutil.rmtree(build_files(services), ignore_errors=True)
    # Cut short, it is no corpus to read.
    mark_corpus(services.database, corpus=services.corpus, status="deleting")
    delete_corpus_contents(services.database, corpus=services.corpus)
    delete_corpus_node(services.database, corpus=services.corpus)
    return documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """A conversation without the forgotten messages.

    `chunks` are those that are left, where they stand now. Of these, `changed` have lost words. `gone` have none left.
    """

    messages: int
    forgotten: int
    digest: str
    chunks: tuple[Chunk, ...]
    changed: tuple[Chunk, ...]
    gone: tuple[Chunk, ...]


def remaining(chunks: Sequence[Chunk], goes: Callable[[MessagePlace], bool]) -> Remaining:
    """Return what is left of a conversation's chunks (all, in order) when these messages go."""
    text, places = _whole(chunks)
    kept = [place for place in places if not goes(place)]
    kept_text, moved = _lines(text, kept)
    starts = {place.id: kept_text.rfind("\n", 0, place.start) + 1 for place in moved}
    left = [_left(chunk, goes, text=text, starts=starts) for chunk in chunks]
    return Remaining(
        messages=len(kept),
        forgotten=len(places) - len(kept),
        digest=messages_digest(kept_text, moved),
        chunks=tuple(chunk for chunk in left if chunk is not None),
        changed=tuple(
            new for old, new in zip(chunks, left, strict=True) if new is not None and new.messages != old.messages
        ),
        gone=tuple(old for old, new in zip(chunks, left, strict=True) if new is None),
    )


def _whole(chunks: Sequence[Chunk]) -> tuple[str, list[MessagePlace]]:
    """Return the text of the conversation, and each message's place in it."""
    text = ""
    places: dict[str, MessagePlace] = {}
    for chunk in chunks:
        start = chunk.start or 0
        inner = bool(places) and chunk.messages[0].id in places  # a further part of a long message
        text += (" " if inner else "\n") * (start - len(text)) + chunk.text
        for place in chunk.messages:
            first = places.get(place.id)
            begin = first.start if first else start + place.start
            places[place.id] = replace(place, start=begin, end=start + place.end)
    return text, list(places.values())


def _left(chunk: Chunk, goes: Callable[[MessagePlace], bool], *, text: str, starts: dict[str, int]) -> Chunk | None:
    """Return a chunk without the messages that go, at its place in the new text, None if nothing is left."""
    kept = [place for place in chunk.messages if not goes(place)]
    if not kept:
        return None
    first = (chunk.start or 0) + (chunk.text.rfind("\n", 0, kept[0].start) + 1)
    line = text.rfind("\n", 0, first) + 1
    begin = starts[kept[0].id] + first - line
    if len(kept) == len(chunk.messages):
        return replace(chunk, start=begin, end=begin + len(chunk.text))
    lines, places = _lines(chunk.text, kept)
    return replace(chunk, text=lines, tokens=count(lines), messages=places, start=begin, end=begin + len(lines))


def _lines(text: str, places: Sequence[MessagePlace]) -> tuple[str, tuple[MessagePlace, ...]]:
    """Return the lines of these messages in a text, and where the messages stand in them."""
    lines, moved, at = [], [], 0
    for place in places:
        start = text.rfind("\n", 0, place.start) + 1
        moved.append(replace(place, start=place.start - start + at, end=place.end - start + at))
        lines.append(text[start : place.end])
        at += place.end - start + 1
    return "\n".join(lines), tuple(moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A conversation with messages to forget, as it was read, and what is left of it."""

    uid: DocumentUid
    end: ConversationEnd
    chunks: tuple[Chunk, ...]
    left: Remaining


def forget_messages(
    services: Services,
    *,
    conversation: str | None = None,
    message: str | None = None,
    speaker: str | None = None,
    everywhere: bool = False,
) -> Forgotten:
    """Delete a message of a conversation, all messages of a speaker, or a whole conversation.

    Quotes of deleted words stay in old answers as withdrawn ones. With `everywhere`, the memories are deleted too that
    quote, retrieved or rest on a chunk with such words: their answers may repeat them. Raises `UsageError` if there is
    nothing of that name, `ConflictError` if a memory to delete is in use, or if others write to a conversation all the
    time.
    """
    _check(conversation, message, speaker)
    check_dimensions(services, readable_corpus(services))
    finish_interrupted(services)
    whole = message is None and speaker is None
    name = None if speaker is None else collapse(speaker)

    def goes(place: MessagePlace) -> bool:
        return whole or place.id == message or (name is not None and place.speaker == name)

    messages, chunks, memories = 0, 0, dict[str, None]()
    for document in _documents(services, conversation, name):
        change, found = _forget(services, document, goes, everywhere=everywhere)
        messages += change.left.forgotten
        chunks += len(change.left.changed) + len(change.left.gone)
        memories |= dict.fromkeys(found)
    if not messages and not (whole and conversation):
        raise UsageError(_unknown(services, conversation, message=message, speaker=speaker))
    if everywhere or not memories:
        return Forgotten(messages=messages, chunks=chunks, memories=tuple(memories))
    note = (
        f"{counted(len(memories), 'memory', 'memories')} may still quote or repeat the words: delete them one by one "
        "(`hgmem memory delete`), or forget `everywhere` the next time"
    )
    return Forgotten(messages=messages, chunks=chunks, kept=tuple(memories), note=note)


def _check(conversation: str | None, message: str | None, speaker: str | None) -> None:
    if conversation is None and speaker is None:
        raise UsageError("nothing to forget is named: name a conversation, a message of it, or a speaker")
    if message is not None and (speaker is not None or conversation is None):
        raise UsageError("a message needs the conversation that it is of, and no speaker")


def _unknown(services: Services, conversation: str | None, *, message: str | None, speaker: str | None) -> str:
    what = f"message {message!r}" if message is not None else f"message of speaker {speaker!r}"
    where = f"corpus {services.corpus!r}" if conversation is None else f"conversation {conversation!r}"
    return f"{where} has no {what}: ids and names are those of the citations"


def _documents(services: Services, conversation: str | None, speaker: str | None) -> list[DocumentUid]:
    if conversation is None:
        return conversations_of_speaker(services.database, corpus=services.corpus, speaker=speaker or "")
    document = document_uid(services.corpus, conversation)
    end = conversation_end(services.database, corpus=services.corpus, uid=document)
    if end is None or (end.chunk is not None and not end.chunk.messages):
        near = similar_documents(services.database, conversation, corpus=services.corpus, conversations=True)
        raise NotFoundError(
            f"corpus {services.corpus!r} has no conversation {conversation!r}{near}: `hgmem status --corpus "
            f"{services.corpus}` lists their ids"
        )
    return [document]


def _forget(
    services: Services, document: DocumentUid, goes: Callable[[MessagePlace], bool], *, everywhere: bool
) -> tuple[_Change, list[str]]:
    """Forget messages of one conversation.

    Returns what has changed, and the memories that may repeat the words. With `everywhere`, these were deleted.
    """
    memories: list[str] = []
    for _ in attempts(ATTEMPTS):
        change = _change_to(services, document, goes)
        if change is None:
            continue
        touched = [chunk.uid for chunk in (*change.left.changed, *change.left.gone)]
        texts = _texts_from(services, touched) if touched else None
        find = _delete_memories if everywhere else _memories
        memories += find(services, texts) if texts else []
        if not change.left.messages:
            delete_documents(services, document)
        elif touched:
            vectors = services.embed([chunk.text for chunk in change.left.changed], kind="document")
            named = {chunk.uid: vector for chunk, vector in zip(change.left.changed, vectors, strict=True)}
            try:
                stale = services.database.write(_write, services, change, named)
            except OvertakenError:
                continue
            refresh(services, *stale)
        memories += find(services, texts) if texts else []  # written while the words were still there
        return change, memories
    raise ConflictError("the conversation is being written by others: try again when they are done")


def _change_to(services: Services, document: DocumentUid, goes: Callable[[MessagePlace], bool]) -> _Change | None:
    """Return a conversation and what is left of it, None while it is being added or was deleted."""
    end = conversation_end(services.database, corpus=services.corpus, uid=document)
    if end is None or not end.sha256:
        return None
    chunks = tuple(conversation_chunks(services.database, corpus=services.corpus, uid=document))
    return _Change(uid=document, end=end, chunks=chunks, left=remaining(chunks, goes))


def _write(
    transaction: Transaction, services: Services, change: _Change, vectors: dict[str, Any]
) -> tuple[list[EntityUid], list[RelationUid]]:
    """Write what is left of a conversation, and return the entities and relations to refresh.

    Raises `OvertakenError` if the conversation is no longer as it was read.
    """
    corpus, left = services.corpus, change.left
    check_embedder(transaction, services)
    properties: dict[str, Scalar] = {"sha256": left.digest, "message_number": change.end.number}
    same = extend_conversation(transaction, corpus=corpus, uid=change.uid, end=change.end, properties=properties)
    if not same or tuple(conversation_chunks(transaction, corpus=corpus, uid=change.uid)) != change.chunks:
        raise OvertakenError
    stale = change_chunks(transaction, services, left.changed, vectors=vectors)
    if left.gone:
        dropped = drop(transaction, services, [chunk.uid for chunk in left.gone], change=DELETED)
        stale = [*stale[0], *dropped[0]], [*stale[1], *dropped[1]]
    rows = [{"uid": chunk.uid, "start": chunk.start, "end": chunk.end} for chunk in left.chunks]
    transaction.run("place_chunks", corpus=corpus, rows=rows)
    link_chunks(transaction, corpus=corpus, documents=[change.uid])
    return stale


def _texts_from(services: Services, chunks: Sequence[str]) -> dict[str, list[str]]:
    """Return the uids of chunks and of all that came from them: built rows, entities and relations."""
    database, corpus = services.database, services.corpus
    entities, relations = entities_of_chunks(database, corpus=corpus, chunks=chunks)
    built = resting(database, corpus=corpus, uids=chunks)
    return {"chunks": list(chunks), "built": built, "entities": [*entities], "relations": [*relations]}


def _memories(services: Services, texts: dict[str, list[str]]) -> list[str]:
    """Return the memories that quote, retrieved or rest on these texts."""
    rows = services.database.run(
        "memories_of_texts",
        corpus=services.corpus,
        chunks=texts["chunks"],
        built=texts["built"],
        entities=texts["entities"],
        relations=texts["relations"],
    )
    return [row["memory"] for row in rows]


def _delete_memories(services: Services, texts: dict[str, list[str]]) -> list[str]:
    """Delete the memories that may hold words of these texts, whosever they are, and return their uids."""
    database, corpus, timeout = services.database, services.corpus, services.settings.claim_timeout
    found = _memories(services, texts)
    in_use = set(leased_memories(database, corpus=corpus, timeout=timeout)) & set(found)
    if in_use:
        raise ConflictError(f"memory {min(in_use)!r} is in use by another run: try again when it ends")
    gone: list[str] = []
    for uids in batches(found, size=PAGE):
        gone += prune_memories(services, uids, Age(seconds=0, timeout=timeout))
    return gone
