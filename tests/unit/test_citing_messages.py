"""Quotes of conversations: each is of one message, and names who said it."""

from hgmem.extraction.message_chunks import message_chunks
from hgmem.retrieval.answer import cite
from hgmem.sources.conversations.rendering import document_of
from hgmem.values.conversations import Conversation, Message
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Citation

SAID = (
    Message("Ann", "The lamp is red. I like it.", "2023-02-04T19:12:30", id="m1"),
    Message("Bob", "no it was never red and the ferry left at nine", "2023-02-04T19:13", id="m2"),
    Message("Ann", "Ok", id="m3"),
)


def chunk() -> Chunk:
    [found] = message_chunks(document_of(Conversation(id="chat", messages=SAID)), corpus="c", uid_="d", tokens=200)
    return found


def cited(answer: str) -> Citation:
    [found] = cite(answer, [chunk()]).citations
    return found


def test_a_quote_is_the_best_sentence_of_all_messages() -> None:
    found = cited("The ferry left at nine [1].")
    assert (found.quote, found.message, found.speaker, found.time) == (SAID[1].text, "m2", "Bob", "2023-02-04T19:13:00")
    assert found.attribution == "Bob, 2023-02-04 19:13 (m2)"
    text = document_of(Conversation(id="chat", messages=SAID)).text
    assert text[found.start : found.end] == found.quote


def test_a_quote_without_shared_words_is_the_first_message() -> None:
    found = cited("Zebra [1].")
    assert (found.quote, found.message) == (SAID[0].text, "m1")


def test_a_time_that_is_unknown_is_left_out() -> None:
    assert cited("Ok [1].").attribution == "Ann (m3)"


def test_other_chunks_name_nobody() -> None:
    [found] = cite("Red [1].", [Chunk(uid="c", document="d", position=0, text="It is red.", tokens=4)]).citations
    assert (found.message, found.speaker, found.time, found.attribution) == ("", "", "", "")
