"""Conversations for tests, and what of a corpus must not depend on how they came in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dumping import dump

from hgmem import Conversation, HGMem, Message

START = datetime(2023, 2, 4, 19, 0)
NAMES = ("Ann", "Bob", "Captain Rhee")
WORDS = ("lamp", "ferry Aurora", "harbour of Nordhavn", "Kestrel", "pilot Moe", "Nordhavn Line", "winter", "pier")


def messages(count: int, *, start: int = 1, pause_after: int = 7) -> list[Message]:
    """Return messages of Ann, Bob and Captain Rhee, with a pause of two hours after some."""
    return [message(number, pause_after=pause_after) for number in range(start, start + count)]


def message(number: int, *, text: str = "", pause_after: int = 7) -> Message:
    """Return one message. Its time and its words follow from its number."""
    said = (
        text or f"The {WORDS[number % 8]} was seen by the {WORDS[number * 3 % 8]} on day {number}, said Captain Rhee."
    )
    time = START + timedelta(minutes=number) + timedelta(hours=2) * (number // pause_after)
    return Message(NAMES[number % 3], said, time, id=f"m{number}")


def conversation(said: Sequence[Message], *, id_: str = "chat", title: str = "") -> Conversation:
    """Return a conversation of these messages."""
    return Conversation(id=id_, messages=said, title=title)


def corpus_of(client: HGMem) -> set[tuple[str, int]]:
    """Return documents, chunks, entities and relations with their vectors, but the corpus's own node.

    Each is a text with its number, so that a test that compares two corpora names what differs.
    """
    found = dump(client.settings, client.corpus)
    kinds = {"Document", "Chunk", "Entity"}
    nodes = [str((uid, node)) for uid, node in found.nodes.items() if kinds & set(node[0])]
    joins = ("FROM_DOCUMENT", "NEXT_CHUNK", "FROM_CHUNK", "RELATES")
    joined = [str((kind, *each)) for kind in joins for each in found.joined(kind)]
    return set(Counter(nodes + joined).items())


def reworded(said: Message, text: str) -> Message:
    """Return a message with other words."""
    return replace(said, text=text)
