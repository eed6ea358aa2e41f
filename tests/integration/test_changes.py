"""Later changes: titles, inserted chunks, corpora deleted during a write."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dumping import check, driver, dump
from neo4j.exceptions import ClientError
from rivals import overtaken

from hgmem import ConflictError, Document, Given, GivenChunk, GivenEntity, HGMem, Message, Settings, UsageError
from hgmem.corpus.documents import DOCUMENTS
from hgmem.corpus.importing import import_graph
from hgmem.graph.database import Database, Transaction
from hgmem.models.extractive import ExtractiveModel
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.text.identity import uid

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


def test_a_corpus_of_another_version_is_refused_in_one_line_and_can_be_deleted(
    client: HGMem, settings: Settings, tmp_path: Path
) -> None:
    client.add(Document(id="one", text=TEXT))
    client.append("talk", [Message(speaker="Rhee", text="The Aurora sails at noon.")])
    with driver(settings) as opened:
        opened.execute_query("MATCH (k:Corpus {name: $corpus}) SET k.schema_version = 0", corpus=client.corpus)

    calls: list[Callable[[], object]] = [
        lambda: client.ask("Who commands the Aurora?"),
        lambda: client.add(Document(id="two", text=TEXT)),
        lambda: client.append("talk", [Message(speaker="Rhee", text="It sails.")]),
        lambda: client.plan(Document(id="two", text=TEXT)),
        lambda: client.export(tmp_path / "old.jsonl.gz"),
        client.reembed,
        client.check,
    ]
    for call in calls:
        with pytest.raises(UsageError, match="has schema version 0, but this hgmem uses "):
            call()
    assert [message.text for message in client.messages("talk")] == ["The Aurora sails at noon."]
    assert client.delete() == 2


CITING = """MATCH (q:Citation {corpus: $corpus}), (c:Chunk {uid: $chunk, corpus: $corpus})
    SET c.status = c.status CREATE (q)-[:CITES]->(c) SET q.withdrawn = false"""
FOLDING = """MATCH (c:Chunk {uid: $chunk, corpus: $corpus}) SET c.status = c.status
    CREATE (e:Entity {uid: $entity, corpus: $corpus, memory: '', key: 'olsen', name: 'Olsen'})
    SET e.type = '', e.description = '' CREATE (e)-[:FROM_CHUNK]->(c)"""


def test_a_deletion_sees_the_citation_that_was_written_beside_it(client: HGMem, settings: Settings) -> None:
    client.add(Document(id="one", text=TEXT))
    [cited] = client.ask("Who commands the Aurora?").citations
    client.delete(document="one")
    client.add(Document(id="one", text=TEXT))
    with driver(settings) as opened:
        ours = functools.partial(client.delete, document="one")
        assert overtaken(opened, ours, CITING, corpus=client.corpus, chunk=cited.chunk) == []
    [answer] = client.memory(client.memories()[0].uid).answers
    assert [one.withdrawn for one in answer.citations] == [True]
    assert client.check().ok


def test_a_deletion_sees_the_entity_that_was_folded_beside_it(client: HGMem, settings: Settings) -> None:
    client.add(Document(id="one", text=TEXT))
    [chunk] = dump(settings, client.corpus).of("Chunk")
    parameters = {"corpus": client.corpus, "chunk": chunk, "entity": uid(client.corpus, "entity", "olsen")}
    with driver(settings) as opened:
        assert overtaken(opened, functools.partial(client.delete, document="one"), FOLDING, **parameters) == []
    assert dump(settings, client.corpus).of("Entity") == {}


def test_a_hundred_documents_go_at_once_and_each_entity_is_written_once(
    open_client: Callable[..., HGMem], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client()
    some = [
        Document(id=f"d{n}", text=f"Rhee met Captain Olsen{n % 7} of the Aurora in Nordhavn{n}.") for n in range(100)
    ]
    client.add([Document(id="kept", text=TEXT), *some])
    check(dump(settings, client.corpus))
    run, written = Transaction.run, Counter[str]()

    def counting(transaction: Transaction, name: str, /, **parameters: Any) -> Any:
        if name in ("write_entities", "write_relations"):
            written.update(row["uid"] for row in parameters["rows"])
        return run(transaction, name, **parameters)

    monkeypatch.setattr(Transaction, "run", counting)
    client.delete(document=[one.id for one in some])
    other = open_client(corpus=f"{client.corpus}-alone")
    other.add(Document(id="kept", text=TEXT))
    found, alone = dump(settings, client.corpus), dump(settings, other.corpus)

    assert written
    assert set(written.values()) == {1}
    assert [chunk["text"] for chunk in found.of("Chunk").values()] == [TEXT]
    assert len(found.joined("RELATES")) == len(alone.joined("RELATES")), "relations of deleted chunks stayed"
    assert {one["name"]: one["description"] for one in found.of("Entity").values()} == {
        one["name"]: one["description"] for one in alone.of("Entity").values()
    }
    check(found)


@pytest.mark.parametrize(
    "name",
    [
        *("touch_entities", "touch_relations", "entity_contributions", "relation_contributions"),
        *("missing_entity_vectors", "missing_relation_vectors"),
    ],
)
def test_rows_that_the_server_leaves_out_twice_are_asked_for_again(
    open_client: Callable[..., HGMem], settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    client = open_client()
    runner = Database if name.startswith("missing") else Transaction
    run, left_out = runner.run, []

    def forgetful(runner: Any, statement: str, /, **parameters: Any) -> Any:
        rows = run(runner, statement, **parameters)
        if statement == name and len(rows) > 2 and len(left_out) < 2:
            left_out.append(len(rows) - 1)
            return rows[:1]
        return rows

    monkeypatch.setattr(runner, "run", forgetful)
    client.add([Document(id="kept", text=TEXT), Document(id="gone", text="Rhee met Olsen, Holt and Brandt in Ostend.")])
    check(dump(settings, client.corpus))
    client.delete(document="gone")
    other = open_client(corpus=f"{client.corpus}-alone")
    other.add(Document(id="kept", text=TEXT))
    found, alone = dump(settings, client.corpus), dump(settings, other.corpus)

    assert len(left_out) == 2
    check(found)
    for kind in ("Entity", "Chunk"):
        assert len(found.of(kind)) == len(alone.of(kind))
    assert len(found.joined("RELATES")) == len(alone.joined("RELATES"))


@pytest.mark.parametrize("how", ["uid", "id", "path"])
def test_a_document_is_deleted_by_uid_id_or_path(
    client: HGMem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text(f"Then {TEXT}")
    client.add(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"id": str(tmp_path / "a.txt"), "path": "a.txt", "uid": uid(client.corpus, "document", f"{tmp_path}/a.txt")}
    client.delete(document=names[how])

    assert [row["title"] for row in client.documents()] == ["b"]


def table(path: Path) -> Path:
    """Write three rows, the last with its own id."""
    path.write_text(f"id,text\n,{TEXT}\n,Nordhavn has a lamp.\nlog,Rhee met Olsen.\n")
    return path


@pytest.mark.parametrize("how", ["absolute", "relative", "path"])
def test_the_path_of_a_table_deletes_all_its_rows_and_no_others(
    client: HGMem, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    file = table(tmp_path / "notes.csv")
    client.add([file, Document(id="kept", text=TEXT)])
    monkeypatch.chdir(tmp_path)
    name = {"absolute": str(file), "relative": "notes.csv", "path": Path("notes.csv")}[how]

    assert [row["title"] for row in client.documents(document=name)] == ["notes #2", "notes #3", "notes #4"]
    assert client.delete(document=name) == 3
    assert [row["uid"] for row in client.documents()] == [uid(client.corpus, "document", "kept")]
    assert client.check().ok
    check(dump(settings, client.corpus))


def test_a_row_is_deleted_alone_by_its_number_or_its_id(client: HGMem, tmp_path: Path) -> None:
    file = table(tmp_path / "notes.csv")
    client.add(file)
    assert client.delete(document=[f"{file}#2", "log"]) == 2
    assert [row["title"] for row in client.documents()] == ["notes #3"]


def test_a_document_with_the_id_of_a_file_goes_before_the_rows_of_that_file(client: HGMem, tmp_path: Path) -> None:
    file = table(tmp_path / "notes.csv")
    client.add([file, Document(id=str(file), title="about the notes", text=TEXT)])
    assert client.delete(document=str(file)) == 1
    assert len(client.documents()) == 3
    assert client.delete(document=str(file)) == 3


def test_a_file_and_one_of_its_rows_count_each_row_once(client: HGMem, tmp_path: Path) -> None:
    file = table(tmp_path / "notes.csv")
    client.add(file)
    assert client.delete(document=[str(file), "log", f"{tmp_path}/../{tmp_path.name}/notes.csv"]) == 3


async def test_the_rows_of_a_file_are_deleted_and_counted_without_blocking(client: HGMem, tmp_path: Path) -> None:
    file = table(tmp_path / "notes.csv")
    await client.aadd(file)
    assert len(await client.adocuments(document=str(file))) == 3
    assert await client.adelete(document=str(file)) == 3
    assert await client.adocuments() == []


def test_a_source_that_is_no_path_names_no_documents(client: HGMem) -> None:
    client.add(Document(id="one", text=TEXT, source="wiki"))
    with pytest.raises(UsageError, match="no document 'wiki', and none from a file of that name"):
        client.delete(document="wiki")
    assert len(client.documents()) == 1


def test_an_unknown_document_keeps_the_known_ones(client: HGMem, tmp_path: Path) -> None:
    client.add([Document(id="one", text=TEXT), table(tmp_path / "notes.csv")])
    with pytest.raises(UsageError, match=f"no document 'two'.*: `hgmem status --corpus {client.corpus}` lists"):
        client.delete(document=["one", str(tmp_path / "notes.csv"), "two"])
    assert client.delete(document=[]) == 0
    assert len(client.documents()) == 4


def test_deleting_tells_how_many_documents_went(client: HGMem) -> None:
    client.add([Document(id="one", text=TEXT), Document(id="two", text="Nordhavn has a lamp.")])
    memory = client.ask("Who commands the Aurora?").memory
    assert client.delete(document="one") == 1
    assert client.delete(memory=memory) == 0
    client.add(Document(id="three", text=TEXT))
    assert client.delete() == 2


def test_a_citation_of_a_deleted_document_keeps_its_quote(client: HGMem) -> None:
    client.add([Document(id="one", text=TEXT), Document(id="two", text="Nordhavn has a lamp.")])
    before = client.ask("Who commands the ferry Aurora?")
    client.delete(document="one")
    after = client.memory(before.memory).answers[0]

    gone = uid(client.corpus, "document", "one")
    assert [one.quote for one in after.citations] == [one.quote for one in before.citations]
    assert {one.document == gone: one.withdrawn for one in after.citations} in (
        {True: True},
        {True: True, False: False},
    )


def test_a_corpus_that_is_being_deleted_is_refused_and_deleting_again_ends_it(client: HGMem) -> None:
    client.add(Document(id="one", text=TEXT))
    client._database.run("mark_corpus", corpus=client.corpus, status="deleting")

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

    with pytest.raises(ConflictError, match="was re-embedded or deleted during the call"):
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


def test_what_goes_while_a_question_is_at_work_leaves_its_memory_whole(open_client: Callable[..., HGMem]) -> None:
    other = open_client()
    other.add([Document(id="one", text=TEXT), Document(id="two", text="Nordhavn has a lamp. Moe keeps it.")])
    extractive = ExtractiveModel(DeterministicEmbedder())

    class Deleting(ExtractiveModel):
        def reply(self, task: Any, /) -> Any:
            reply = extractive.reply(task)
            if task.name in going:
                going.remove(task.name)
                other.delete(document={"evolve": "one", "answer": "two"}[task.name])
            return reply

    going = {"evolve", "answer"}
    client = open_client(model=Deleting(DeterministicEmbedder()))
    answer = client.ask("Who commands the ferry Aurora of Nordhavn?", steps=1)
    stored = client.memory(answer.memory)

    assert not going
    assert stored.points
    assert all(point.entities for point in stored.points)
    assert any(entity.provisional for point in stored.points for entity in point.entities)
    assert all(citation.withdrawn for citation in stored.answers[0].citations)
    assert client.check().findings == ()
