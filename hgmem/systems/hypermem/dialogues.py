"""The messages of conversations, put together from the chunks that hold them, and their times."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date
from itertools import groupby
from typing import Any

from hgmem.extraction.message_chunks import messages_in, moment, words_of
from hgmem.retrieval.rendering import heading
from hgmem.values.graph_elements import Chunk

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueMessage:
    """A message: who said what when. `time` is in ISO 8601 or empty, `chunks` are those that hold its words."""

    id: str
    speaker: str
    time: str
    text: str
    chunks: tuple[Chunk, ...] = ()

    @property
    def plain(self) -> list[str]:
        """The message without its chunks, as a plain value."""
        return [self.id, self.speaker, self.time, self.text]


def of_plain(values: Sequence[Any]) -> tuple[DialogueMessage, ...]:
    """Return the messages of plain values."""
    return tuple(DialogueMessage(id=id_, speaker=speaker, time=time, text=text) for id_, speaker, time, text in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A conversation: the uid, title and heading of its document, and its messages in order."""

    document: str
    title: str
    heading: str
    messages: tuple[DialogueMessage, ...]


def dialogues(chunks: Sequence[Chunk]) -> list[Dialogue]:
    """Return the conversations among chunks, which are in order of documents and positions.

    The parts of a long message are joined.
    """
    found = []
    for document, group in groupby(chunks, key=lambda chunk: chunk.document):
        of_document = list(group)
        messages = tuple(
            DialogueMessage(
                id=id_, speaker=place.speaker, time=place.time, text=words_of(holding, id_), chunks=tuple(holding)
            )
            for id_, (place, holding) in messages_in(of_document).items()
        )
        if messages:
            first = of_document[0]
            told = heading(first, place=False)
            found.append(Dialogue(document=document, title=first.title, heading=told, messages=messages))
    return found


def unit_key(document: str, first: DialogueMessage) -> str:
    """Return the key of what begins at a message of a conversation (uid)."""
    return f"{document}/{first.id}"


def lines(messages: Sequence[DialogueMessage], *, start: int | None = None) -> str:
    """Return messages as lines of a prompt, numbered from `start` if it is given, with weekdays and times."""
    found = []
    for number, message in enumerate(messages, start=start or 0):
        head = "" if start is None else f"[{number}] "
        time = f"({_day_and_time(message.time)}) " if message.time else ""
        found.append(f"{head}{time}{message.speaker}: {message.text}")
    return "\n".join(found)


def _day_and_time(time: str) -> str:
    return f"{_WEEKDAYS[moment(time).weekday()]} {time[:16].replace('T', ' ')}"


def gap_between(before: DialogueMessage, after: DialogueMessage) -> str:
    """Return how much time lies between two messages, in words of a prompt."""
    if not before.time or not after.time:
        return "unknown"
    seconds = int((moment(after.time) - moment(before.time)).total_seconds())
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds} seconds"


def sortable(time: str) -> str:
    """Return a time in ISO 8601 in a form in which texts sort like times: in UTC, to the second. `''` stays.

    Raises `ValueError` for what is no time.
    """
    try:
        return moment(time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if time else ""
    except ValueError:
        raise ValueError("write a time as in 2023-05-01 or 2023-05-01T13:30") from None


def until(time: str) -> str:
    """Return the latest time that still counts as before or at `time`, as `sortable` does. Of a day, it is the end."""
    given = time.strip()
    with suppress(ValueError):
        given = f"{date.fromisoformat(given)}T23:59:59"
    return sortable(given)
