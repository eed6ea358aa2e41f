"""Documents indexed without a graph: complete for systems that need chunks alone, and extracted later where wanted."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from dumping import driver, dump
from letters import wanting

from hgmem import HGMem
from hgmem.errors import ModelError
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Document

ADA = Document(id="ada", title="Ada", text="Ada Marsh sold the Tallow Mill to Bo Finch in Ravensund.")
BO = Document(id="bo", title="Bo", text="Bo Finch wrote to Clara Dace about the price of the Tallow Mill.")
CLARA = Document(id="clara", title="Clara", text="Clara Dace keeps the ledger of Ravensund Harbour in a box.")
ALL = [ADA, BO, CLARA]


class Renamed(DeterministicEmbedder):
    """Another embedder, by its name."""

    name = "renamed"


class Silent:
    """A model that no test here may call."""

    name = "silent"

    def reply(self, task: object) -> object:
        raise AssertionError(f"asked for {task!r}")


def statuses(client: HGMem) -> dict[str, str]:
    return {str(one["title"]): str(one["status"]) for one in client.documents()}


def texts(client: HGMem) -> list[object]:
    held = dump(client.settings, client.corpus)
    return [held.of("Document"), held.of("Chunk"), held.joined("NEXT_CHUNK")]


def test_chunks_are_embedded_without_a_model_and_the_corpus_is_complete(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=Silent())
    plan = client.plan(ALL, graph=False)
    assert (plan.documents, plan.chunks, plan.calls) == (3, 3, 0)
    done = client.add(ALL, graph=False)
    assert (done.documents, done.chunks, done.failed, done.unchanged) == (3, 3, 0, 0)
    held = client.status()
    assert (held.chunks, held.without_graph, held.pending, held.failed, held.entities) == (3, 3, 0, 0, 0)
    assert set(statuses(client).values()) == {"embedded"}
    before = dump(client.settings, client.corpus, times=True)
    again = asyncio.run(client.aadd(ALL, graph=False))
    assert (again.documents, again.unchanged) == (0, 3)
    assert dump(client.settings, client.corpus, times=True) == before
    assert asyncio.run(client.aplan(ALL, graph=False)).documents == 0
    assert client.check().findings == client.check().notes == ()


def test_a_graph_that_is_added_later_is_that_of_documents_indexed_with_one(
    client: HGMem, open_client: Callable[..., HGMem]
) -> None:
    client.add(ALL, graph=False)
    client.add([ADA])
    assert statuses(client) == {"Ada": "done", "Bo": "embedded", "Clara": "embedded"}
    assert client.plan(ALL).chunks == 2
    done = client.add(ALL)
    assert (done.documents, done.unchanged, done.chunks) == (2, 1, 2)
    later = dump(client.settings, client.corpus)
    assert client.add(ALL, graph=False).unchanged == 3
    assert dump(client.settings, client.corpus) == later
    client.delete()
    client.add(ALL)
    assert dump(client.settings, client.corpus) == later
    assert client.status().without_graph == 0


def test_a_changed_document_keeps_the_graph_of_the_chunks_that_stay(open_client: Callable[..., HGMem]) -> None:
    client = open_client(chunk_tokens=16, chunk_overlap=0)
    client.add([Document(id="both", text=f"{ADA.text}\n\n{BO.text}")])
    entities = client.status().entities
    client.add([Document(id="both", text=f"{ADA.text}\n\n{CLARA.text}")], graph=False)
    held = client.status()
    assert 0 < held.without_graph < held.chunks
    assert 0 < held.entities < entities
    assert client.check().findings == ()
    client.add([Document(id="both", text=f"{ADA.text}\n\n{CLARA.text}")])
    assert client.status().without_graph == 0
    client.add([CLARA], graph=False)
    client.delete(document="clara")
    client.delete(document="both")
    assert (client.status().chunks, client.status().entities) == (0, 0)


def test_chunks_whose_extraction_failed_are_complete_without_a_graph(open_client: Callable[..., HGMem]) -> None:
    def failing(task: object) -> object:
        raise ModelError("no reply")

    client = open_client(model=wanting(extract=failing))
    client.add([BO], graph=False)
    client.add([ADA, BO])
    held = client.status()
    assert (held.failed, held.without_graph) == (2, 1)
    assert statuses(client) == {"Ada": "pending", "Bo": "embedded"}
    assert client.plan_retry().chunks == 2
    client.reembed(Renamed(dimensions=32))
    with driver(client.settings) as opened:
        (row,) = opened.execute_query(
            "MATCH (c:Chunk {corpus: $corpus}) RETURN count(c.embedding) AS vectors", corpus=client.corpus
        ).records
    assert row["vectors"] == 1
    other = open_client(embedder=Renamed(dimensions=32))
    other.add([ADA], graph=False)
    assert statuses(other) == {"Ada": "embedded", "Bo": "embedded"}
    assert other.status().failed == 1
    assert other.retry_failed().chunks == 1
    assert statuses(other) == {"Ada": "embedded", "Bo": "done"}
    assert other.check().findings == ()


def test_archives_and_other_embedders_keep_documents_without_a_graph(client: HGMem, tmp_path: Path) -> None:
    client.add(ALL, graph=False)
    client.reembed(Renamed(dimensions=32))
    client.reembed(DeterministicEmbedder())
    before = texts(client)
    client.export(tmp_path / "whole.jsonl")
    client.export(tmp_path / "bare.jsonl", embeddings=False)
    for archive in ("whole.jsonl", "bare.jsonl"):
        client.delete()
        client.import_archive(tmp_path / archive)
        assert texts(client) == before
        assert client.check().findings == ()
    assert client.add(ALL).chunks == 3


def test_each_system_answers_and_the_one_that_wants_a_graph_says_what_is_missing(client: HGMem) -> None:
    client.add(ALL, graph=False)
    assert "Bo Finch" in client.ask("Who bought the Tallow Mill?", system="naive").text
    answer = client.ask("Who bought the Tallow Mill?")
    assert answer.status == "answered"
    note = f"corpus '{client.corpus}' has no entities: for more than its chunks, run `hgmem index` without --no-graph"
    assert note in answer.notes
    client.add(ALL)
    assert note not in client.ask("Who bought the Tallow Mill?").notes


@pytest.mark.usefixtures("toy")
def test_a_build_works_on_documents_without_a_graph(client: HGMem) -> None:
    client.add(ALL, graph=False)
    assert client.build("toy").failed == 0
    assert client.status().builds[0].rows["ToyGist"] == 3
    client.add(ALL)
    assert client.build("toy").made == 0
