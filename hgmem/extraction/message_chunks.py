"""The chunks of a conversation, which end at messages."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hgmem.extraction.chunking import ChunkOptions, split
from hgmem.text.identity import text_hash, uid
from hgmem.text.tokens import count
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document

PAUSE = timedelta(hours=1)  # after a longer one, a new chunk begins


def messages_digest(text: str, messages: Sequence[MessagePlace], *, before: str = "") -> str:
    """Return the hash of a conversation's text and of who said what when.

    It is chained, message by message: `before` is the hash of the conversation up to these.
    """
    digest, at = before, 0
    for place in messages:
        message = (place.id, place.speaker, place.time, place.metadata)
        digest = _chained(digest, (text[at : place.end], place.start - at, *message))
        at = place.end
    return _chained(digest, (text[at:],)) if text[at:] else digest


def _chained(before: str, part: Sequence[object]) -> str:
    return text_hash(before + json.dumps(part, ensure_ascii=False, default=dict))


def message_chunks(document: Document, *, corpus: str, uid_: str, tokens: int) -> tuple[Chunk, ...]:
    """Return the chunks of a conversation, each of whole messages of at most `tokens` together.

    A chunk's uid stands for the conversation and the chunk's first message, so a chunk that grows keeps it. A new chunk
    begins after a pause of more than an hour. A message that is longer than a chunk is split, and shares none.
    """
    found: list[Chunk] = []
    for group in _groups(document, tokens=tokens):
        begin, end = _line_start(document, group[0]), group[-1].end
        whole = document.text[begin:end]
        spans = [(0, len(whole))] if len(group) > 1 or count(whole) <= tokens else _parts(whole, tokens)
        for part, (start, stop) in enumerate(spans):
            text = whole[start:stop]
            found.append(
                Chunk(
                    uid=uid(corpus, "chunk", uid_, "message", group[0].id, part),
                    document=uid_,
                    position=len(found),
                    text=text,
                    tokens=count(text),
                    start=begin + start,
                    end=begin + stop,
                    title=document.title,
                    messages=tuple(_moved(place, begin + start, len(text)) for place in group),
                )
            )
    return tuple(found)


def continued_chunks(
    document: Document, *, corpus: str, uid_: str, tokens: int, last: Chunk | None
) -> tuple[Chunk, ...]:
    """Return the chunks of messages that follow a conversation's `last` chunk, as if all had been there at once.

    The text of the document begins where the last chunk ends. That chunk is the first of the result if it grows.
    """
    if last is None:
        return message_chunks(document, corpus=corpus, uid_=uid_, tokens=tokens)
    if last.uid == uid(corpus, "chunk", uid_, "message", last.messages[0].id, 0):
        by, position, start = len(last.text), last.position, last.start or 0
        document = replace(document, text=last.text + document.text)
    else:  # the last part of a long message never grows
        by, position, start = 0, last.position + 1, last.end or 0
    places = tuple(replace(place, start=place.start + by, end=place.end + by) for place in document.messages)
    document = replace(document, messages=(*last.messages, *places) if by else places)
    found = message_chunks(document, corpus=corpus, uid_=uid_, tokens=tokens)
    moved = [
        replace(
            chunk, position=chunk.position + position, start=(chunk.start or 0) + start, end=(chunk.end or 0) + start
        )
        for chunk in found
    ]
    return tuple(moved[1:] if moved[0].text == last.text else moved)


def messages_in(chunks: Iterable[Chunk]) -> dict[str, tuple[MessagePlace, list[Chunk]]]:
    """Return the messages of a conversation's chunks by id, in order: the first place of each, and its chunks."""
    found: dict[str, tuple[MessagePlace, list[Chunk]]] = {}
    for chunk in chunks:
        for place in chunk.messages:
            found.setdefault(place.id, (place, []))[1].append(chunk)
    return found


def words_of(chunks: Sequence[Chunk], message: str) -> str:
    """Return the words of a message (id) that stands in these chunks of a conversation."""
    text, end = "", 0
    for chunk in chunks:
        for place in chunk.messages:
            if place.id == message:
                at = (chunk.start or 0) + place.start
                text += " " * (at - end if text else 0) + chunk.text[place.start : place.end]
                end = (chunk.start or 0) + place.end
    return text


def _groups(document: Document, *, tokens: int) -> Iterator[Sequence[MessagePlace]]:
    """Yield the messages of each chunk."""
    group: list[MessagePlace] = []
    in_group = 0  # tokens
    for place in document.messages:
        size = count(document.text[_line_start(document, place) : place.end])
        if group and (in_group + size > tokens or paused(group[-1], place)):
            yield group
            group, in_group = [], 0
        group.append(place)
        in_group += size
    if group:
        yield group


def paused(before: MessagePlace, after: MessagePlace) -> bool:
    """Return whether more than `PAUSE` lies between two messages. Times without a zone count as UTC."""
    if not before.time or not after.time:
        return False
    return abs(moment(after.time) - moment(before.time)) > PAUSE


def moment(time: str) -> datetime:
    """Return the time that a text in ISO 8601 says, in UTC where it says no zone."""
    return with_zone(datetime.fromisoformat(time))


def with_zone(time: datetime) -> datetime:
    """Return a time with its zone, which is UTC where it says none."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _line_start(document: Document, place: MessagePlace) -> int:
    return document.text.rfind("\n", 0, place.start) + 1


def _parts(text: str, tokens: int) -> list[tuple[int, int]]:
    return [(piece.start, piece.end) for piece in split(text, ChunkOptions(tokens=tokens, overlap=0, restart=0))]


def _moved(place: MessagePlace, by: int, size: int) -> MessagePlace:
    """Return a place in a text as a place in a part of it that begins at `by`."""
    return replace(place, start=min(max(place.start - by, 0), size), end=max(min(place.end - by, size), 0))
