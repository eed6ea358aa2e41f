"""Chunks of conversations are rewritten in place: what rests on their text stays or goes with it."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from conversing import conversation, corpus_of, message, messages, reworded
from dumping import check, dump

from hgmem import Document, HGMem

QUESTION = "What was seen by the pilot Moe?"


def statuses(client: HGMem) -> dict[str, str]:
    return {uid: chunk["status"] for uid, chunk in dump(client.settings, client.corpus).of("Chunk").items()}


def withdrawn(client: HGMem) -> list[str]:
    cited = dump(client.settings, client.corpus).of("Citation").values()
    return [one["quote"] for one in cited if one["withdrawn"]]


@pytest.fixture
def fresh(open_client: Callable[..., HGMem]) -> Callable[..., set[tuple[str, int]]]:
    """Returns what a new corpus of the same name holds after these conversations."""

    def indexing(client: HGMem, *said: object, graph: bool = True) -> set[tuple[str, int]]:
        client.delete()
        client.add(said, graph=graph)
        return corpus_of(client)

    return indexing


@pytest.mark.parametrize("graph", [False, True])
def test_a_conversation_that_grew_ends_as_if_it_had_been_added_at_once(
    client: HGMem, fresh: Callable[..., Any], graph: bool
) -> None:
    client.add(conversation(messages(10)), graph=graph)
    before = dump(client.settings, client.corpus).of("Chunk")
    client.add(conversation(messages(13)), graph=graph)
    after = dump(client.settings, client.corpus).of("Chunk")
    assert before.keys() <= after.keys()
    assert any(after[uid]["text"] != chunk["text"] for uid, chunk in before.items())
    assert client.check().ok
    check(dump(client.settings, client.corpus))
    grown = corpus_of(client)
    assert grown == fresh(client, conversation(messages(13)), graph=graph)


def test_an_extraction_stays_until_the_grown_chunk_is_extracted_anew(client: HGMem) -> None:
    client.add(conversation(messages(5)))
    [uid] = statuses(client)
    entities = dump(client.settings, client.corpus).of("Entity")
    assert entities
    client.add(conversation(messages(6)), graph=False)
    assert statuses(client) == {uid: "embedded"}
    assert dump(client.settings, client.corpus).of("Entity") == entities
    assert client.check().ok
    assert client.plan(conversation(messages(6))).chunks == 1
    report = client.add(conversation(messages(6)))
    assert (report.documents, report.chunks, statuses(client)) == (1, 1, {uid: "done"})
    check(dump(client.settings, client.corpus))


def test_changes_end_in_the_corpus_of_the_last_text(client: HGMem, fresh: Callable[..., Any]) -> None:
    draw, said = random.Random(26), messages(30)
    client.add(conversation(said))
    for number in range(12):
        at = draw.randrange(len(said))
        if number % 3 == 0:
            said = [*said[:at], *said[at + 1 :]]
        elif number % 3 == 1:
            said = [*said[:at], reworded(said[at], f"Changed{number} was the lamp of Nordhavn."), *said[at + 1 :]]
        else:
            said = [*said, message(100 + number)]
        client.add(conversation(said), graph=number % 4 > 0)
    client.add(conversation(said))
    assert client.check().ok
    check(dump(client.settings, client.corpus))
    assert corpus_of(client) == fresh(client, conversation(said))


def test_what_rests_on_a_chunk_stays_when_it_grows(client: HGMem) -> None:
    client.add(conversation(messages(5)))
    answer = client.ask(QUESTION)
    assert answer.citations
    assert answer.points
    before = dump(client.settings, client.corpus)
    client.add(conversation(messages(6)))
    after = dump(client.settings, client.corpus)
    for kind in ("CITES", "SUPPORTED_BY", "RETRIEVED"):
        chunks = before.of("Chunk")
        assert [one for one in before.joined(kind) if one[1] in chunks] == [
            one for one in after.joined(kind) if one[1] in chunks
        ]
    assert withdrawn(client) == []
    assert after.of("Citation") == before.of("Citation")
    assert client.check().ok


def test_a_changed_message_withdraws_its_quotes_alone(client: HGMem) -> None:
    said = messages(5)
    client.add(conversation(said))
    answer = client.ask(QUESTION, system="naive")
    [quoted] = [one for one in said if one.text in answer.citations[0].quote]
    other = next(one for one in said if one != quoted)
    client.add(conversation([reworded(one, "Ah.") if one == other else one for one in said]))
    [kept] = client.memory(answer.memory).answers[-1].citations[:1]
    text = "\n".join(chunk["text"] for chunk in dump(client.settings, client.corpus).of("Chunk").values())
    assert kept.start is not None
    assert not kept.withdrawn
    assert text[kept.start : kept.end] == kept.quote
    client.add(conversation([reworded(one, "Ah.") if one == quoted else one for one in said]))
    assert answer.citations[0].quote in withdrawn(client)
    assert client.check().ok


def test_the_report_says_what_was_replaced(client: HGMem) -> None:
    said = messages(5)
    assert client.add([conversation(said), Document(id="d", text="Yes.")], graph=False).replaced == {}
    grown = [*said, *messages(1, start=6)]
    assert client.add(conversation(grown), graph=False).replaced == {}
    assert client.add(conversation(grown, title="Other"), graph=False).replaced == {}
    changed = conversation([reworded(grown[0], "Ah."), *grown[1:4]])
    done = client.add([changed, Document(id="d", text="No.")], graph=False)
    assert done.replaced == {"chat": 3, "d": 0}


@pytest.mark.usefixtures("toy")
def test_builds_keep_their_rows_when_a_conversation_grows_and_lose_those_of_changed_chunks(client: HGMem) -> None:
    client.add(conversation(messages(13)), graph=False)
    client.build("toy")
    rows = dump(client.settings, client.corpus).of("Built").keys()
    client.add(conversation(messages(15)), graph=False)
    assert dump(client.settings, client.corpus).of("Built").keys() == rows
    [build] = client.status().builds
    assert (build.status, build.change) == ("stale", "messages were appended")
    client.build("toy")
    said = messages(15)
    client.add(conversation([reworded(said[0], "Ah."), *said[1:]]), graph=False)
    left = dump(client.settings, client.corpus).of("Built").keys()
    [build] = client.status().builds
    assert build.change == "documents were changed"
    assert len(left) < len(rows)
    assert client.check().ok
