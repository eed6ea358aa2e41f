"""The messages of conversations, put together from the chunks that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from hgmem.extraction.message_chunks import messages_in, words_of
from hgmem.values.graph_elements import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
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


def of_plain(value: Sequence[Any]) -> Said:
    """Return the message of a plain value."""
    id_, speaker, time, text = value
    return Said(id=id_, speaker=speaker, time=time, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A conversation: the uid and title of its document, and its messages in order."""

    document: str
    title: str
    messages: tuple[Said, ...]


def dialogues(chunks: Sequence[Chunk]) -> list[Dialogue]:
    """Return the conversations among chunks, which are in order of documents and positions."""
    found = []
    for document, group in groupby(chunks, key=lambda chunk: chunk.document):
        held = list(group)
        if messages := _messages(held):
            found.append(Dialogue(document=document, title=held[0].title, messages=messages))
    return found


def _messages(chunks: Sequence[Chunk]) -> tuple[Said, ...]:
    """Return the messages of a document's chunks. The parts of a long message are joined."""
    return tuple(
        Said(id=id_, speaker=place.speaker, time=place.time, text=words_of(held, id_), chunks=tuple(held))
        for id_, (place, held) in messages_in(chunks).items()
    )


def lines(messages: Sequence[Said], *, start: int | None = None) -> str:
    """Return messages as lines of a prompt, numbered from `start` if it is given."""
    shown = []
    for number, said in enumerate(messages, start=start or 0):
        head = "" if start is None else f"[{number}] "
        when = f"({said.time[:16].replace('T', ' ')}) " if said.time else ""
        shown.append(f"{head}{when}{said.speaker}: {said.text}")
    return "\n".join(shown)
