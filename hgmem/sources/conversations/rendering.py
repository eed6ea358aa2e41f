"""Conversations as documents, a line a message."""

import json
import reprlib
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

from hgmem.errors import DocumentError
from hgmem.extraction.message_chunks import with_zone
from hgmem.text.segmentation import collapse, has_half_pair
from hgmem.values.conversations import Conversation, Message, MessagePlace
from hgmem.values.inputs import Document

_SHOWN = "%Y-%m-%d %H:%M"


def document_of(conversation: Conversation) -> Document:
    """Return a conversation as a document, a line a message in the given order. Its source is the conversation's id.

    A line is `[2023-02-04 19:12] Ann: It is red.`, without the brackets where the time is unknown. Runs of blanks and
    line breaks in a message become one space. Times may run backwards. Raises `DocumentError` that names the first
    message without a speaker, without words, with a time or a text that can't be stored, or with the id of another.
    """
    if not conversation.id:
        raise DocumentError("a conversation has no id: give it one, which stands for it across runs")
    text, places = rendered(conversation.id, conversation.messages)
    return Document(
        id=conversation.id,
        title=conversation.title or conversation.id,
        text=text,
        source=conversation.id,
        metadata=conversation.metadata,
        messages=places,
    )


def rendered(
    conversation: str, messages: Iterable[Message], *, number: int = 1, known: Iterable[str] = ()
) -> tuple[str, tuple[MessagePlace, ...]]:
    """Return messages as text and their places in it. The first has this number, and `known` are ids of earlier ones.

    Raises `DocumentError` as `document_of` does.
    """
    lines: list[str] = []
    places: list[MessagePlace] = []
    seen, at = set(known), 0
    for place, message in enumerate(messages, start=number):
        name = f"message {place} of conversation {conversation!r}"
        speaker, words = _said(message, name)
        time = _time(message.time, name)
        id_ = str(place) if message.id is None else message.id
        if id_ in seen:
            raise DocumentError(f"{name} has the id {id_!r} of another: ids must be unique in a conversation")
        seen.add(id_)
        head = f"[{time.strftime(_SHOWN)}] {speaker}: " if time else f"{speaker}: "
        start = at + len(head)
        iso = time.isoformat() if time else ""
        places.append(
            MessagePlace(
                id=id_,
                speaker=speaker,
                time=iso,
                start=start,
                end=start + len(words),
                metadata=message.metadata or {},
            )
        )
        lines.append(head + words)
        at = start + len(words) + 1
    return "\n".join(lines), tuple(places)


def _said(message: Message, name: str) -> tuple[str, str]:
    """Return who says what in a message. Raises `DocumentError` for what is no message or cannot be stored."""
    if not isinstance(message, Message):
        raise DocumentError(f"{name} is {reprlib.repr(message)}: pass a Message, such as Message('Ann', 'Hello.')")
    for field, value in (("speaker", message.speaker), ("text", message.text), ("id", message.id or "")):
        if value is not None and not isinstance(value, str):
            raise DocumentError(f"{name} has the {field} {reprlib.repr(value)}: pass a text")
    stored = json.dumps(asdict(message), ensure_ascii=False, default=str)
    if has_half_pair(stored):
        raise DocumentError(f"{name} has an unpaired surrogate, such as \\ud83d: remove it")
    speaker, words = collapse(message.speaker or ""), collapse(message.text or "")
    if not speaker:
        raise DocumentError(f"{name} has no speaker: say who it is from")
    if not words:
        raise DocumentError(f"{name} has no text: leave it out, or write what it shows")
    return speaker, words


def in_order_of_time(messages: Iterable[Message]) -> list[Message]:
    """Return messages with times, those of one time in their order. Times without a zone count as UTC."""
    return sorted(messages, key=lambda message: with_zone(_time(message.time, "a message") or datetime.min))


def _time(time: datetime | str | None, name: str) -> datetime | None:
    if time is None or time == "":
        return None
    if isinstance(time, datetime):
        return time
    try:
        return datetime.fromisoformat(time)
    except (TypeError, ValueError):
        raise DocumentError(
            f"{name} has the time {time!r}, which is none: write it as in 2023-02-04T19:12, or leave it out"
        ) from None
