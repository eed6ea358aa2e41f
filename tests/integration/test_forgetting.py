"""Forgotten messages leave no words behind, and what is left of a conversation stays as it was."""

from collections.abc import Callable
from typing import Any

import pytest
from conversing import conversation, message, messages, reworded
from dumping import check, driver, dump
from toying import installed

from hgmem import Document, HGMem, Message, UsageError
from hgmem.corpus.deletion import forget_messages
from hgmem.values.reports import Forgotten

SECRET = "Quetzalcoatl"
QUESTION = f"What is known of {SECRET}, Captain Rhee and the pilot Moe?"

EVERY_PROPERTY = """
CALL () {
  MATCH (n) RETURN properties(n) AS held UNION ALL MATCH ()-[r]->() RETURN properties(r) AS held
}
UNWIND keys(held) AS name
WITH name, held[name] AS value
WHERE toLower(CASE WHEN value IS :: LIST<STRING NOT NULL> THEN reduce(s = '', one IN value | s + ' ' + one)
                   WHEN value IS :: STRING THEN value ELSE '' END) CONTAINS toLower($word)
RETURN name, value
"""


def forget(client: HGMem, **what: Any) -> Forgotten:
    return forget_messages(client._services(None), **what)


def told(client: HGMem, word: str) -> list[str]:
    """Return the properties of the whole database in which the word stands."""
    with driver(client.settings) as opened:
        return [row["name"] for row in opened.execute_query(EVERY_PROPERTY, word=word).records]


def texts(client: HGMem) -> list[str]:
    chunks = dump(client.settings, client.corpus).of("Chunk").values()
    return [chunk["text"] for chunk in sorted(chunks, key=lambda chunk: chunk["start"])]


def with_secret(at: int = 4, count: int = 12) -> list[Message]:
    said = messages(count)
    text = f"The spy {SECRET} met Captain Rhee on the ferry Aurora, and {SECRET} gave the pilot Moe a key."
    return [*said[:at], reworded(said[at], text), *said[at + 1 :]]


@pytest.mark.parametrize("at", [0, 4, 7, 11])
@pytest.mark.parametrize("graph", [False, True])
def test_a_message_goes_and_the_rest_stays(client: HGMem, at: int, graph: bool) -> None:
    said = with_secret(at)
    client.add(conversation(said), graph=graph)
    before = dump(client.settings, client.corpus).of("Chunk")
    report = forget(client, conversation="chat", message=said[at].id)
    assert (report.messages, report.chunks, report.memories, report.note) == (1, 1, (), "")
    assert told(client, SECRET) == []
    assert dump(client.settings, client.corpus).of("Chunk").keys() <= before.keys()
    assert client.check().ok
    check(dump(client.settings, client.corpus))
    left = [one for one in said if one != said[at]]
    assert [line.split(": ", 1)[1] for line in "\n".join(texts(client)).split("\n")] == [one.text for one in left]
    again = client.add(conversation(left), graph=graph)
    assert again.unchanged == (0 if graph else 1)
    assert client.check().ok
    client.append("chat", message(99))
    assert client.check().ok


def test_all_of_a_speaker_goes_in_one_conversation_or_in_all(client: HGMem) -> None:
    client.add([conversation(messages(12)), conversation(messages(5), id_="other"), Document(id="d", text="Bob's.")])
    first = forget(client, conversation="chat", speaker="Bob")
    assert first.messages == 4
    assert {line.split("] ")[1].split(":")[0] for text in texts(client) for line in text.split("\n") if "]" in line}
    second = forget(client, speaker=" Bob ")
    assert second.messages == 2
    assert not [text for text in texts(client) if "] Bob:" in text]
    assert client.check().ok
    with pytest.raises(UsageError, match="has no message of speaker 'Bob'"):
        forget(client, speaker="Bob")


def test_a_whole_conversation_goes(client: HGMem) -> None:
    client.add([conversation(with_secret()), conversation(messages(3), id_="other")])
    report = forget(client, conversation="chat")
    assert report.messages == 12
    assert client.status().documents == 1
    assert told(client, SECRET) == []
    assert client.check().ok


def test_a_long_message_goes_from_all_of_its_chunks(client: HGMem) -> None:
    said = messages(6)
    said[2] = reworded(said[2], f"The spy {SECRET} went on and on. " * 60)
    client.add(conversation(said), graph=False)
    report = forget(client, conversation="chat", message="m3")
    assert report.messages == 1
    assert report.chunks > 2
    assert told(client, SECRET) == []
    assert client.add(conversation([*said[:2], *said[3:]]), graph=False).unchanged == 1
    assert client.check().ok


def test_quotes_of_what_is_left_keep_their_places(client: HGMem) -> None:
    said = with_secret(0)
    client.add(conversation(said), graph=False)
    uids = []
    for one in said:
        answer = client.ask(one.text, system="naive")
        uids.append(answer.memory)
    forget(client, conversation="chat", message="m1")
    text = "\n".join(texts(client))
    quotes = [one for uid in uids for one in client.memory(uid).answers[-1].citations]
    assert {one.message for one in quotes if one.withdrawn} == {"m1"}
    for one in quotes:
        if not one.withdrawn:
            assert text[one.start : one.end] == one.quote
    assert client.check().ok


@pytest.mark.parametrize("way", ["message", "speaker", "conversation"])
def test_everywhere_leaves_the_words_in_no_property(open_client: Callable[..., HGMem], way: str) -> None:
    with installed():
        client = open_client()
        said = with_secret(4)
        client.add([conversation(said), Document(id="d", text="The lamp of Nordhavn is kept by the keeper Olsen.")])
        client.build("toy")
        asked = [client.ask(QUESTION, system=system).memory for system in ("naive", "hgmem", "bm25", "toy")]
        other = client.ask("Who keeps the lamp of Nordhavn?", system="bm25", filters={"document": _lamp(client)})
        secret = told(client, SECRET)
        assert {"text", "quote", "extraction"} <= set(secret)
        question = [name for name in secret if name in ("question", "latest")]
        assert question
        what = {"message": {"message": "m5"}, "speaker": {"speaker": said[4].speaker}, "conversation": {}}[way]
        report = forget(client, conversation="chat", everywhere=True, **what)
        assert not report.kept
        assert set(asked) <= set(report.memories)
        assert other.memory not in report.memories
        assert told(client, SECRET) == []
        assert client.check().ok
        client.build("toy")
        assert client.check().ok


def _lamp(client: HGMem) -> str:
    return next(row["uid"] for row in client.documents() if row["title"] != "chat")


@pytest.mark.usefixtures("toy")
def test_without_everywhere_old_answers_keep_withdrawn_quotes(client: HGMem) -> None:
    client.add(conversation(with_secret(4)))
    client.build("toy")
    answer = client.ask(QUESTION, system="naive")
    report = forget(client, conversation="chat", message="m5")
    assert report.memories == ()
    assert report.kept == (answer.memory,)
    assert report.note.startswith("1 memory may still quote or repeat the words: delete them one by one")
    kept = client.memory(answer.memory).answers[-1].citations
    assert [one.withdrawn for one in kept if SECRET in one.quote] == [True]
    assert not any(SECRET in row["text"] for row in dump(client.settings, client.corpus).of("Built").values())
    assert client.check().ok


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({}, "nothing to forget is named"),
        ({"speaker": "Ann", "message": "m1"}, "a message needs the conversation that it is of"),
        ({"conversation": "chat", "message": "m1", "speaker": "Ann"}, "and no speaker"),
        (
            {"conversation": "chta"},
            r"has no conversation 'chta' \(similar: 'chat'\): `hgmem status --corpus \w+` lists their ids",
        ),
        ({"conversation": "text"}, "has no conversation 'text': `hgmem"),
        ({"conversation": "chat", "message": "m99"}, "conversation 'chat' has no message 'm99'"),
        ({"speaker": "Eve"}, "has no message of speaker 'Eve'"),
    ],
)
def test_what_is_not_there_is_named(client: HGMem, what: dict[str, str], said: str) -> None:
    client.add([conversation(messages(2)), Document(id="text", text="Yes.")], graph=False)
    with pytest.raises(UsageError, match=said):
        forget(client, **what)


def test_a_message_that_comes_again_begins_a_chunk_of_its_own(client: HGMem) -> None:
    said = messages(8, pause_after=2)
    client.append("chat", said)
    forget(client, conversation="chat", message="m2")
    client.append("chat", said[1])
    assert texts(client)[-1].endswith(said[1].text)
    assert client.check().ok
