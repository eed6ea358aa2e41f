"""Messages that are appended to conversations: the same chunks as at once, exactly once, and found at once."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from conversing import conversation, corpus_of, message, messages, reworded
from dumping import check, dump

from hgmem import ConflictError, Conversation, Document, DocumentError, HGMem, HGMemError, Message, UsageError
from hgmem.corpus import appending
from hgmem.graph.database import Database

LONG = " ".join(f"Word{number} of a long story about the pilot Moe." for number in range(200))


def said(client: HGMem) -> list[tuple[str, str]]:
    """Return id and words of all messages, in order."""
    chunks = sorted(dump(client.settings, client.corpus).of("Chunk").values(), key=lambda chunk: chunk["position"])
    places = [(place, chunk["text"]) for chunk in chunks for place in json.loads(chunk["messages"])]
    return [(place["id"], text[place["start"] : place["end"]]) for place, text in places]


@pytest.mark.parametrize("graph", [pytest.param(False, marks=pytest.mark.slow), True])
def test_fifty_pieces_give_the_corpus_of_one(client: HGMem, graph: bool) -> None:
    given = messages(50)
    given[20] = reworded(given[20], LONG)  # longer than a chunk
    given[33] = reworded(given[33], "مرحبا 👋🏽 " * 30)
    given[40] = replace(given[40], time=given[3].time)  # backwards
    given[41] = replace(given[41], time=None, metadata={"place": "pier"})
    for number, one in enumerate(given):
        report = client.append(Conversation(id="chat", title="Talk"), one, graph=graph and number % 7 == 0)
        assert (report.messages, report.known, report.created) == (1, 0, number == 0)
    assert client.check().ok
    if graph:
        client.append("chat", graph=True)
    check(dump(client.settings, client.corpus))
    appended = corpus_of(client)
    again = client.add(conversation(given, title="Talk"), graph=graph)
    assert (again.documents, again.unchanged, again.chunks) == (0, 1, 0)
    assert corpus_of(client) == appended
    client.delete()
    client.add(conversation(given, title="Talk"), graph=graph)
    assert corpus_of(client) == appended
    client.delete()
    client.append(Conversation(id="chat", title="Talk"), given[:17])
    client.append("chat", given[17:], graph=graph)
    assert corpus_of(client) == appended


def test_a_message_is_found_by_its_words_at_once(client: HGMem) -> None:
    client.append("chat", messages(5))
    client.append("chat", Message("Ann", "The zeppelin landed on the roof."))
    for system in ("bm25", "naive"):
        answer = client.ask("What about the zeppelin?", system=system)
        assert "zeppelin" in answer.citations[0].quote


def test_appending_again_writes_nothing(client: HGMem) -> None:
    given = messages(9)
    client.append("chat", given)
    before = dump(client.settings, client.corpus, times=True)
    report = client.append("chat", given[3:])
    assert (report.messages, report.known, report.created, report.chunks) == (0, 6, False, 0)
    assert dump(client.settings, client.corpus, times=True) == before
    client.append("chat", [*given[5:], message(10)])
    assert said(client) == [(one.id, one.text) for one in messages(10)]


@pytest.mark.parametrize(
    "changed",
    [{"text": "Other words."}, {"speaker": "Eve"}, {"time": None}, {"metadata": {"place": "pier"}}],
    ids=lambda one: next(iter(one)),
)
def test_a_known_id_with_another_content_is_refused_by_name(client: HGMem, changed: dict[str, Any]) -> None:
    given = messages(9)
    client.append("chat", given)
    with pytest.raises(DocumentError, match="message 'm3' of conversation 'chat' is stored with another content"):
        client.append("chat", [message(10), replace(given[2], **changed)])
    assert len(said(client)) == 9


def test_ids_are_the_running_numbers(client: HGMem) -> None:
    client.append("chat", [Message("Ann", "Yes."), Message("Bob", "No.")])
    client.append("chat", Message("Ann", "Yes.", id='a"b\\ü'))
    client.append("chat", Message("Ann", "Yes.", id='a"b\\ü'))
    client.append("chat", Message("Ann", "Yes."))
    assert [one for one, _ in said(client)] == ["1", "2", 'a"b\\ü', "4"]
    client.append("chat", Message("Ann", "Yes.", id="6"))
    with pytest.raises(DocumentError, match="message 6 of conversation 'chat' has the id '6' of another"):
        client.append("chat", Message("Ann", "Yes."))
    assert client.check().ok


def test_a_bad_message_refuses_all_of_the_call(client: HGMem) -> None:
    with pytest.raises(DocumentError, match="message 3 of conversation 'chat' has no speaker"):
        client.append("chat", [*messages(2), Message("", "Yes.")])
    assert not client.status().documents


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (Message("Ann", None), "has no text: leave it out"),  # type: ignore[arg-type]
        (Message(None, "Yes."), "has no speaker: say who"),  # type: ignore[arg-type]
        (Message(5, "Yes."), "has the speaker 5: pass a text"),  # type: ignore[arg-type]
        (Message("Ann", "Yes.", id=5), "has the id 5: pass a text"),  # type: ignore[arg-type]
        ("hello", "is 'hello': pass a Message, such as"),
        ({"speaker": "Ann", "text": "Yes."}, "is {'speaker': 'Ann', .*: pass a Message"),
        ([{"speaker": "Ann"}], "is {'speaker': 'Ann'}: pass a Message"),
        (5, "is 5: pass a Message"),
        (Message("Ann", "\ud800 lone"), "has an unpaired surrogate, such as .*: remove it"),
        (Message("Ann", "Yes.", metadata={"a": "\ud800"}), "has an unpaired surrogate"),
    ],
)
def test_what_is_no_message_is_named_with_the_remedy(client: HGMem, given: Any, named: str) -> None:
    with pytest.raises(DocumentError, match=f"^message 1 of conversation 'chat' {named}"):
        client.append("chat", given)
    with pytest.raises(DocumentError, match=f"^message 1 of conversation 'chat' {named}"):
        client.add(Conversation(id="chat", messages=given if isinstance(given, list) else [given]))
    assert not client.status().documents


@pytest.mark.parametrize("conversation", ["\ud800", Conversation(id="chat", title="\ud800")])
def test_an_unpaired_surrogate_in_the_name_of_a_conversation_is_refused(client: HGMem, conversation: Any) -> None:
    with pytest.raises(HGMemError, match="has an unpaired surrogate in its metadata"):
        client.append(conversation, messages(1))


def test_what_is_no_conversation_is_refused(client: HGMem) -> None:
    client.add(Document(id="text", text="The lamp is red."))
    with pytest.raises(UsageError, match=r"document 'text' of corpus .* is not a conversation"):
        client.append("text", messages(1))
    with pytest.raises(UsageError, match="has no conversation 'chta'"):
        client.append("chta", graph=True)
    with pytest.raises(UsageError, match="has messages itself"):
        client.append(conversation(messages(1)))
    with pytest.raises(UsageError, match=r"conversation 5 is no text: pass the conversation's id, or a Conversation"):
        client.append(5, messages(1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"has no conversation 'chta'.*: .* appending messages creates one"):
        client.append("chta")
    with pytest.raises(UsageError, match="has no conversation 'chta'"):
        client.append("chta", messages(1), existing=True)
    assert client.status().documents == 1


def test_an_empty_conversation_can_be_added_and_continued(client: HGMem) -> None:
    client.add(Conversation(id="chat", title="Talk", metadata={"year": 2023}))
    assert client.messages("chat") == ()
    client.append("chat", messages(3))
    again = client.add(
        Conversation(id="chat", title="Talk", metadata={"year": 2023}, messages=messages(3)), graph=False
    )
    assert again.unchanged == 1
    assert client.check().ok


def test_a_conversation_keeps_the_chunk_size_that_it_began_with(
    client: HGMem, open_client: Callable[..., HGMem]
) -> None:
    client.append("chat", messages(5))
    other = open_client(chunk_tokens=50)
    other.append("chat", messages(5, start=6))
    assert client.add(conversation(messages(10), title="chat"), graph=False).unchanged == 1


def test_a_conversation_that_is_being_added_is_a_clear_conflict(client: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    client.append("chat", messages(3))
    client._database.run(
        "unseal_documents", corpus=client.corpus, uids=list(dump(client.settings, client.corpus).of("Document"))
    )
    monkeypatch.setattr(appending, "ATTEMPTS", 3)
    with pytest.raises(ConflictError, match="conversation 'chat' is being written by others"):
        client.append("chat", message(4))


def test_threads_append_each_message_once(client: HGMem) -> None:
    given = messages(48)
    parts = [given[at::4] for at in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda part: [client.append("chat", one) for one in part], parts):
            pass
    assert sorted(one for one, _ in said(client)) == sorted(str(one.id) for one in given)
    order = [one for one, _ in said(client)]
    for part in parts:
        assert [one for one in order if one in {each.id for each in part}] == [one.id for one in part]
    assert client.check().ok


PROCESS = """
import sys
from hgmem import HGMem, Message
with HGMem.open(sys.argv[1]) as hg:
    for number in range(12):
        hg.append("chat", Message(sys.argv[2], f"Message {number} of {sys.argv[2]}.", id=f"{sys.argv[2]}{number}"))
"""


def test_processes_append_each_message_once(client: HGMem, environment: dict[str, str]) -> None:
    client.append("chat", messages(1))
    begun = [
        subprocess.Popen([sys.executable, "-c", PROCESS, client.corpus, name], env=environment)
        for name in ("Ann", "Bob")
    ]
    assert [one.wait(120) for one in begun] == [0, 0]
    ids = [one for one, _ in said(client)]
    assert sorted(ids) == sorted(["m1", *(f"{name}{number}" for name in ("Ann", "Bob") for number in range(12))])
    assert client.check().ok


def test_appending_is_awaited(client: HGMem) -> None:
    report = asyncio.run(client.aappend("chat", messages(2)))
    assert (report.messages, report.chunks, report.created) == (2, 1, True)


def test_fifty_appends_with_a_question_after_each_withdraw_no_quote(client: HGMem) -> None:
    memories = []
    for one in messages(50):
        client.append("chat", one)
        memories.append(client.ask(one.text, system="naive"))
        assert memories[-1].citations
    kept = [one for answer in memories for one in client.memory(answer.memory).answers[-1].citations]
    assert not [one for one in kept if one.withdrawn]
    text = "\n".join(
        chunk["text"]
        for chunk in sorted(
            dump(client.settings, client.corpus).of("Chunk").values(), key=lambda chunk: chunk["position"]
        )
    )
    assert all(text[one.start : one.end] == one.quote for one in kept)
    assert client.check().ok


def test_an_append_reads_no_more_of_a_longer_conversation(client: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    run = Database.run

    def counting(self: Database, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
        rows = run(self, name, **parameters)
        read.append(len(str(rows)))
        return rows

    def characters(number: int) -> int:
        read.clear()
        client.append("chat", message(number))
        return sum(read)

    client.append("chat", messages(20))
    monkeypatch.setattr(Database, "run", counting)
    short = characters(100_000)
    client.append("chat", messages(1_000, start=21))
    long = characters(200_000)
    assert read
    assert long < 2 * short + 2_000  # a chunk holds more or fewer messages
