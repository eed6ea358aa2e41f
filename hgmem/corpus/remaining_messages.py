"""What is left of a conversation without some of its messages: texts, places and chunks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hgmem.extraction.message_chunks import messages_digest
from hgmem.text.tokens import count
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk


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
    said, moved = _lines(text, kept)
    starts = {place.id: said.rfind("\n", 0, place.start) + 1 for place in moved}
    left = [_left(chunk, goes, text=text, starts=starts) for chunk in chunks]
    return Remaining(
        messages=len(kept),
        forgotten=len(places) - len(kept),
        digest=messages_digest(said, moved),
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
    said, places = _lines(chunk.text, kept)
    return replace(chunk, text=said, tokens=count(said), messages=places, start=begin, end=begin + len(said))


def _lines(text: str, places: Sequence[MessagePlace]) -> tuple[str, tuple[MessagePlace, ...]]:
    """Return the lines of these messages in a text, and where the messages stand in them."""
    lines, moved, at = [], [], 0
    for place in places:
        start = text.rfind("\n", 0, place.start) + 1
        moved.append(replace(place, start=place.start - start + at, end=place.end - start + at))
        lines.append(text[start : place.end])
        at += place.end - start + 1
    return "\n".join(lines), tuple(moved)
