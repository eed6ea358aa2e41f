"""Conversations as documents: a line a message, with the place of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hgmem.text.segmentation import Span, collapse
from hgmem.values.inputs import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one person says at one time. `id` is the caller's."""

    id: str
    time: datetime
    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as a document, and where the words of each message (by id) stand in its text."""

    document: Document
    places: Mapping[str, Span]


def rendered(id_: str, messages: Iterable[Message], *, title: str = "") -> Conversation:
    """Return messages as a document in order of time, a line each: `[2023-02-04 19:12] Name: text`.

    Runs of blanks and line breaks in a message become one space. A time without a zone counts as UTC for the order.
    """
    lines: list[str] = []
    places: dict[str, Span] = {}
    at = 0
    for message in sorted(messages, key=_moment):
        words = collapse(message.text)
        head = f"[{message.time:%Y-%m-%d %H:%M}] {collapse(message.speaker)}: "
        places[message.id] = Span(at + len(head), at + len(head) + len(words))
        lines.append(head + words)
        at += len(lines[-1]) + 1
    return Conversation(document=Document(id=id_, title=title or id_, text="\n".join(lines)), places=places)


def _moment(message: Message) -> datetime:
    return message.time if message.time.tzinfo else message.time.replace(tzinfo=UTC)
