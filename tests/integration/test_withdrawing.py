"""Memories of deleted or changed documents: their points and citations show their current support."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dumping import driver, dump
from letters import LETTERS, QUESTION, wanting
from typer.testing import CliRunner, Result

from hgmem import Answer, Document, HGMem, MemoryPoint, Settings
from hgmem.cli import app
from hgmem.memory.replay.page import scene
from hgmem.memory.stored_memories import load_history
from hgmem.systems.hgmem.replies import EvolveReply, Insertion

TEXT = "Captain Rhee commands the ferry Aurora of the Nordhavn Line."
LAMP = "The lamp of Nordhavn is kept by Moe of the Nordhavn Line."
ASKED = "Who commands the ferry Aurora?"

Run = Callable[..., Result]


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env=environment)


def points(client: HGMem, memory: str) -> tuple[MemoryPoint, ...]:
    return client.memory(memory).points


def chunks(settings: Settings, corpus: str) -> set[str]:
    return set(dump(settings, corpus).of("Chunk"))


def shown(hgmem: Run, memory: str) -> str:
    return " ".join(hgmem("memory", "show", memory).stdout.split())


# Memory points --------------------------------------------------------------------------------------------------


def test_a_point_whose_chunks_were_all_deleted_says_so(client: HGMem, hgmem: Run, settings: Settings) -> None:
    client.add(Document(id="one", text=TEXT))
    before = client.ask(ASKED)
    assert before.points
    assert not any(point.deleted_chunks or point.unsupported for point in before.points)
    assert "no longer supported" not in shown(hgmem, before.memory)
    gone = chunks(settings, client.corpus)
    client.delete(document="one")

    found = points(client, before.memory)
    assert [point.uid for point in found] == [point.uid for point in before.points if point.died is None]
    assert all(point.unsupported and set(point.deleted_chunks) == gone for point in found)
    assert "no longer supported: all its chunks were deleted or changed" in shown(hgmem, before.memory)
    told = json.loads(hgmem("memory", "show", before.memory, "--json").stdout)["points"]
    assert [(one["chunks"], one["deleted_chunks"]) for one in told] == [([], list(one.deleted_chunks)) for one in found]
    assert "no longer supported" in hgmem("memory", "lineage", found[0].uid).stdout
    drawn = scene(load_history(client._services(None), before.memory))
    assert {one["deleted"] for one in drawn["points"]} == {len(gone)}
    assert client.check().ok


def test_a_point_that_lost_some_of_its_chunks_tells_how_many(client: HGMem, hgmem: Run, settings: Settings) -> None:
    client.add([Document(id="one", text=TEXT), Document(id="two", text=LAMP)])
    memory = client.ask(ASKED).memory
    with driver(settings) as opened:
        opened.execute_query(
            "MATCH (p:MemoryPoint {corpus: $c}), (k:Chunk {corpus: $c}) MERGE (p)-[:SUPPORTED_BY]->(k)", c=client.corpus
        )
    client.delete(document="one")

    found = points(client, memory)
    assert {(len(point.chunks), len(point.deleted_chunks), point.unsupported) for point in found} == {(1, 1, False)}
    assert "1 chunk, 1 more deleted or changed" in shown(hgmem, memory)


def test_a_point_whose_chunk_goes_while_its_step_is_written_says_so(open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    client.add_graph(LETTERS)
    cited = Insertion(entities=("Anna", "Mill"), description="Anna sold the mill.", chunks=(0,))
    play = wanting(evolve=lambda _: EvolveReply(insert=(cited,)))

    class Deleting:
        name = play.name

        def reply(self, task: Any, /) -> Any:
            reply = play.reply(task)
            if task.name == "step":
                client.delete(document="letters")
            return reply

    answer = open_client(model=Deleting()).ask(QUESTION, steps=2, answer=False)
    found = points(client, answer.memory)
    assert not any(point.chunks for point in found)
    assert any(point.unsupported for point in found)  # some of the letters' points never had a chunk


def test_a_point_made_of_points_that_lost_their_chunks_lost_them_too(letters: Callable[..., HGMem]) -> None:
    client = letters()
    first = client.ask(QUESTION, steps=1)
    client.delete(document="letters")
    lost = {chunk for point in points(client, first.memory) for chunk in point.deleted_chunks}
    client.add(Document(id="other", text="Anna sold the mill to Bo in autumn. Dag burned the mill."))
    client.ask(QUESTION, memory=first.memory, steps=2)

    [merged] = [one for one in points(client, first.memory) if one.description.startswith("Merged at step 2.")]
    assert lost
    assert set(merged.deleted_chunks) <= lost
    assert merged.deleted_chunks
    assert client.check().ok


def test_a_chunk_that_came_back_is_not_counted_as_deleted_where_it_supports_again(
    client: HGMem, settings: Settings
) -> None:
    client.add(Document(id="one", text=TEXT))
    memory = client.ask(ASKED).memory
    client.delete(document="one")
    client.add(Document(id="one", text=TEXT))
    assert all(point.unsupported for point in points(client, memory))  # not checked again
    with driver(settings) as opened:
        opened.execute_query(
            "MATCH (p:MemoryPoint {corpus: $c}), (k:Chunk {corpus: $c}) MERGE (p)-[:SUPPORTED_BY]->(k)", c=client.corpus
        )
    assert not any(point.deleted_chunks for point in points(client, memory))


def test_deleted_chunks_are_in_the_archive_of_their_corpus(client: HGMem, tmp_path: Path) -> None:
    client.add([Document(id="one", text=TEXT), Document(id="two", text=LAMP)])
    memory = client.ask(ASKED).memory
    client.delete(document=["one", "two"])
    before = client.memory(memory)
    client.export(tmp_path / "whole.jsonl.gz")
    client.delete()
    client.import_archive(tmp_path / "whole.jsonl.gz")
    assert client.memory(memory) == before
    assert all(point.unsupported for point in before.points)


# Citations ------------------------------------------------------------------------------------------------------


def statuses(answer: Answer) -> set[tuple[bool, str | None]]:
    return {(one.withdrawn, one.quote_status) for one in answer.citations if one.quote == TEXT}


def test_a_withdrawn_citation_says_whether_its_sentence_still_stands(client: HGMem, hgmem: Run) -> None:
    client.add(Document(id="one", text=TEXT))
    before = client.ask(ASKED)
    assert statuses(before) == statuses(client.memory(before.memory).answers[0]) == {(False, None)}

    for text, status, told in (
        (
            f"A preface. {TEXT.replace(' ', chr(10))}",
            "in_document",
            "withdrawn; the sentence still stands in the document",
        ),
        (f"A preface. {TEXT.replace('Rhee', 'Olsen')}", "not_in_document", "withdrawn; no longer in the document"),
        (None, "document_deleted", "withdrawn; the document was deleted"),
    ):
        if text:
            client.add(Document(id="one", text=text))
        else:
            client.delete(document="one")
        assert statuses(client.memory(before.memory).answers[0]) == {(True, status)}
        assert told in shown(hgmem, before.memory)
        found = json.loads(hgmem("memory", "show", before.memory, "--json").stdout)["answers"][0]["citations"]
        assert {one["quote_status"] for one in found if one["quote"] == TEXT} == {status}
        drawn = scene(load_history(client._services(None), before.memory))["answers"][0]["citations"]
        assert {one["status"] for one in drawn if one["quote"] == TEXT} == {status}
    assert asyncio.run(client.amemory(before.memory)) == client.memory(before.memory)


def test_a_sentence_that_stands_in_another_document_alone_does_not_stand(client: HGMem) -> None:
    client.add(Document(id="one", text=TEXT))
    memory = client.ask(ASKED).memory
    client.add([Document(id="one", text=LAMP), Document(id="two", text=TEXT)])
    assert statuses(client.memory(memory).answers[0]) == {(True, "not_in_document")}


@pytest.mark.parametrize(
    "sentence", [r"Captain Rhee (of \E[x]?) commands the .* Aurora\Q+.", "Kapitän Rhee führt die Fähre Ørsund."]
)
def test_signs_of_regular_expressions_in_a_quote_stand_for_themselves(client: HGMem, sentence: str) -> None:
    client.add(Document(id="one", text=sentence))
    memory = client.ask("Who is Rhee?").memory
    quotes = [one.quote for one in client.memory(memory).answers[0].citations]
    assert quotes
    for text, status in (
        (f"Preface of many words. {sentence}", "in_document"),
        (f"Preface of many words. {sentence.replace('Rhee', 'Rhea')}", "not_in_document"),
    ):
        client.add(Document(id="one", text=text))
        assert {one.quote_status for one in client.memory(memory).answers[0].citations} == {status}


def test_a_memory_without_withdrawn_citations_asks_the_documents_nothing(
    client: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add(Document(id="one", text=TEXT))
    memory = client.ask(ASKED).memory
    run, names = client._database.run, list[str]()

    def counting(name: str, /, **parameters: Any) -> Any:
        names.append(name)
        return run(name, **parameters)

    monkeypatch.setattr(client._database, "run", counting)
    client.memory(memory)
    assert "quote_statuses" not in names
    client.delete(document="one")
    names.clear()
    client.memory(memory)
    assert names.count("quote_statuses") == 1
