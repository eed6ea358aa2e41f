"""Chunks of conversations: in pieces as at once, and what is left without some messages."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hgmem.corpus.deletion import remaining
from hgmem.extraction.message_chunks import continued_chunks, message_chunks, messages_digest, words_of
from hgmem.sources.conversations.rendering import document_of, rendered
from hgmem.text.tokens import count
from hgmem.values.conversations import Conversation, Message, MessagePlace
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document

WORDS = ("lamp", "🛳️", "harbour", "Nordhavn,", "yes.", "مرحبا", "wait!", "and", "the", "I")


def said(seed: int, size: int = 40) -> list[Message]:
    """Return random messages, some long, some after a pause, some without a time or with an earlier one."""
    draw, time, found = random.Random(seed), datetime(2023, 2, 4), []
    for _ in range(size):
        time += timedelta(minutes=draw.choice([1, 5, 59, 90, -200]))
        text = " ".join(draw.choices(WORDS, k=draw.choice([1, 4, 9, 90])))
        found.append(Message(draw.choice(["Ann", "Bob"]), text, draw.choice([time, time, None])))
    return found


def whole(messages: list[Message]) -> Document:
    return document_of(Conversation(id="chat", messages=messages))


def chunks(messages: list[Message]) -> tuple[Chunk, ...]:
    return message_chunks(whole(messages), corpus="c", uid_="d", tokens=30)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_give_the_chunks_and_the_hash_of_the_whole(seed: int) -> None:
    messages, draw = said(seed), random.Random(seed)
    found: list[Chunk] = []
    digest, at = "", 0
    while at < len(messages):
        size = draw.choice([1, 1, 2, 7])
        text, places = rendered("chat", messages[at : at + size], number=at + 1)
        by = 1 if found else 0
        places = tuple(_moved(place, by) for place in places)
        text = "\n" * by + text
        last = found[-1] if found else None
        digest = messages_digest(text, places, before=digest)
        piece = Document(id="chat", title="chat", text=text, messages=places)
        fresh = continued_chunks(piece, corpus="c", uid_="d", tokens=30, last=last)
        if last and fresh[0].uid == last.uid:
            found.pop()
        found += fresh
        at += size
    document = whole(messages)
    assert tuple(found) == chunks(messages)
    assert digest == messages_digest(document.text, document.messages)
    assert all(document.text[one.start : one.end] == one.text for one in found)
    for place in document.messages:
        assert words_of(found, place.id) == document.text[place.start : place.end]


def _moved(place: MessagePlace, by: int) -> MessagePlace:
    return replace(place, start=place.start + by, end=place.end + by)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_is_the_conversation_without_the_messages(seed: int) -> None:
    messages, draw = said(seed), random.Random(seed)
    numbered = [Message(one.speaker, one.text, one.time, id=str(at)) for at, one in enumerate(messages)]
    gone = {str(at) for at in draw.sample(range(len(messages)), 9)}
    found = remaining(chunks(numbered), lambda place: place.id in gone)
    left = whole([one for one in numbered if one.id not in gone])
    assert (found.messages, found.forgotten) == (len(messages) - 9, 9)
    assert found.digest == messages_digest(left.text, left.messages)
    for chunk in found.chunks:
        assert left.text[chunk.start : chunk.end] == chunk.text
        assert chunk.tokens == count(chunk.text)
        for place in chunk.messages:
            assert place.id not in gone
            held = next(one for one in left.messages if one.id == place.id)
            assert chunk.text[place.start : place.end] in left.text[held.start : held.end]
    assert not {place.id for chunk in found.changed for place in chunk.messages} & gone
    assert {place.id for chunk in found.gone for place in chunk.messages} <= gone


def test_a_pause_of_more_than_an_hour_begins_a_chunk() -> None:
    time = datetime(2023, 2, 4)
    times = [time, time + timedelta(minutes=60), time + timedelta(minutes=121), None]
    found = chunks([Message("Ann", "Yes.", at) for at in times])
    assert [[place.id for place in chunk.messages] for chunk in found] == [["1", "2"], ["3", "4"]]


def test_a_chunk_keeps_its_uid_when_it_grows() -> None:
    short, long = chunks([Message("Ann", "Yes.")]), chunks([Message("Ann", "Yes."), Message("Bob", "No.")])
    assert (short[0].uid, len(long)) == (long[0].uid, 1)
    assert long[0].text.startswith(short[0].text)
