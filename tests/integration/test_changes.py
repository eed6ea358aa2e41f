"""What changes later: titles, chunks in between, corpora that go while somebody writes."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest
from neo4j.exceptions import ClientError

from hgmem import ConflictError, Document, Given, GivenChunk, GivenEntity, HGMem, UsageError
from hgmem.corpus.importing import import_graph
from hgmem.corpus.writing import DOCUMENTS
from hgmem.graph.corpus import mark_corpus
from hgmem.graph.database import Transaction
from hgmem.testing import ScriptedModel

TEXT = "Captain Rhee commands the ferry Aurora of the Nordhavn Line."


def test_a_new_title_arrives_without_a_model_call(open_client: Callable[..., HGMem]) -> None:
    first = Document(id="one", text=TEXT, title="Old")
    open_client().add(first)
    silent = open_client(model=ScriptedModel({}))
    report = silent.add(dataclasses.replace(first, title="New", metadata={"page": 3}))

    assert (report.documents, report.failed) == (1, 0)
    assert [row["title"] for row in silent.documents()] == ["New"]
    assert silent.add(dataclasses.replace(first, title="New", metadata={"page": 3})).unchanged == 1


def test_a_chunk_given_later_takes_its_place_between_the_others(client: HGMem) -> None:
    def given(*numbers: int) -> Given:
        chunks = tuple(GivenChunk(id=f"c{n}", document="d", text=f"Chunk number {n} names Rhee.") for n in numbers)
        return Given(documents=(Document(id="d", text=""),), chunks=chunks, entities=(GivenEntity(name="Rhee"),))

    client.add_graph(given(0, 2))
    client.add_graph(given(0, 1, 2))
    found = client.ask("Who is Rhee?", system="naive").steps[0].retrieved[0].chunks
    rows = client._database._driver.execute_query(
        "MATCH (c:Chunk {corpus: $corpus}) OPTIONAL MATCH (c)-[:NEXT_CHUNK]->(n) "
        "RETURN c.source_id AS chunk, c.position AS position, n.source_id AS next ORDER BY position",
        corpus=client.corpus,
    ).records

    assert len(found) == 3
    assert [tuple(row.values()) for row in rows] == [("c0", 0, "c1"), ("c1", 1, "c2"), ("c2", 2, None)]


def test_an_import_never_takes_the_place_of_memories(client: HGMem, tmp_path: object) -> None:
    client.add(Document(id="one", text=TEXT))
    client.ask("Who commands the Aurora?")
    client.delete(document=str(client.documents()[0]["uid"]))

    with pytest.raises(UsageError, match="1 memories"):
        import_graph(client._services(None), Given(documents=(Document(id="d", text=TEXT),)))
    assert len(client.memories()) == 1


def test_a_corpus_that_is_being_deleted_is_refused_and_deleting_again_ends_it(client: HGMem) -> None:
    client.add(Document(id="one", text=TEXT))
    mark_corpus(client._database, corpus=client.corpus, status="deleting")

    with pytest.raises(UsageError, match="deleting"):
        client.ask("Who commands the Aurora?")
    with pytest.raises(UsageError, match="deleting"):
        client.add(Document(id="two", text=TEXT))
    client.delete()
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


def test_a_document_is_not_written_into_a_corpus_that_was_deleted_meanwhile(open_client: Callable[..., HGMem]) -> None:
    other, client = open_client(), open_client()
    client.add(Document(id="one", text=TEXT))

    def vanishing() -> Iterator[Document]:
        yield from (Document(id=f"some{n}", text=f"{n} {TEXT}") for n in range(DOCUMENTS))
        other.delete()
        yield Document(id="one more", text=TEXT)

    with pytest.raises(ConflictError, match="deleted meanwhile"):
        client.add(vanishing())


def test_a_write_that_another_deleted_under_is_done_again(client: HGMem) -> None:
    calls: list[int] = []

    def work(transaction: Transaction) -> str:
        calls.append(1)
        if len(calls) == 1:
            gone = ClientError("Unable to load NODE")
            gone._neo4j_code = "Neo.ClientError.Statement.EntityNotFound"
            raise gone
        return str(transaction.run("server_version")[0]["version"])

    assert client._database.write(work) == client.server[1]
    assert len(calls) == 2
