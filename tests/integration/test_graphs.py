"""Pre-built graphs, LightRAG directories, and deletion."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from dumping import Dump, check, check_vector, driver, dump

from hgmem import Document, Given, GivenChunk, GivenEntity, GivenRelation, HGMem
from hgmem.corpus import adding, importing
from hgmem.errors import ConflictError, ModelError, UsageError
from hgmem.extraction.contributions import entity_text
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.corpus import create_corpus, find_corpus, lease_corpus
from hgmem.models.embedding import TextKind, Vectors
from hgmem.models.metering import measuring
from hgmem.settings import Settings
from hgmem.sources.files import load
from hgmem.sources.lightrag import CHUNKS, DOCUMENTS, GRAPH
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.text.identity import key, uid

Open = Callable[..., HGMem]
TEXT = "Ada met Bo in Port Ellis. Bo sails the Aurora. Cy waits."
GIFT = Given(
    documents=(Document(id="log", text=TEXT, title="The log"),),
    chunks=(
        GivenChunk(id="c1", document="log", text="Ada met Bo in Port Ellis.", start=0),
        GivenChunk(id="c2", document="log", text="Bo sails the Aurora.", start=26),
        GivenChunk(id="c3", document="log", text="Cy waits.", start=47),
    ),
    entities=(
        GivenEntity(name="Ada", type="person", description="Met Bo.", chunks=("c1",)),
        GivenEntity(name="Bo", type="person", description="A captain.", chunks=("c1", "c2")),
        GivenEntity(name="Aurora", type="ship", description="A ferry."),
    ),
    relations=(
        GivenRelation(source="Bo", target="Ada", description="They met.", keywords=("meeting",), chunks=("c1",)),
        GivenRelation(source="Bo", target="Aurora", description="He sails it.", weight=2.5, chunks=("c2",)),
        GivenRelation(source="Cy", target="Port Ellis", description="Cy waits there.", chunks=("c3",)),
    ),
)


def names(found: Dump) -> list[str]:
    return sorted(entity["name"] for entity in found.of("Entity").values() if not entity["memory"])


def relations(found: Dump) -> dict[tuple[str, str], dict[str, object]]:
    entities = found.of("Entity")
    return {
        (entities[source]["name"], entities[target]["name"]): relation
        for source, target, relation in found.joined("RELATES")
    }


def entity(found: Dump, client: HGMem, name: str) -> dict[str, object]:
    return found.of("Entity")[uid(client.corpus, "entity", key(name))]


# Pre-built graphs -----------------------------------------------------------------------------------------------


def test_a_graph_is_written_as_it_is_given(client: HGMem, settings: Settings) -> None:
    client.add_graph(GIFT)
    found, status = dump(settings, client.corpus), client.status()

    assert (status.documents, status.chunks, status.entities, status.relations) == (1, 3, 5, 3)
    assert (status.pending, status.failed) == (0, 0)
    assert names(found) == ["Ada", "Aurora", "Bo", "Cy", "Port Ellis"]
    assert entity(found, client, "Bo")["description"] == "A captain."
    assert entity(found, client, "Cy")["description"] == "Cy waits there."  # described only by its relation
    assert relations(found)["Ada", "Bo"]["keywords"] == ["meeting"]
    assert relations(found)["Aurora", "Bo"]["weight"] == 2.5
    (document,) = found.of("Document").values()
    assert (document["title"], document["status"]) == ("The log", "done")
    chunks = sorted(found.of("Chunk").values(), key=lambda chunk: chunk["position"])
    assert [chunk["source_id"] for chunk in chunks] == ["c1", "c2", "c3"]
    assert all(TEXT[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in chunks)
    assert len(found.joined("NEXT_CHUNK")) == 2
    check(found)


def test_chunks_and_entities_imported_in_many_transactions_are_as_in_one(
    open_client: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Document(id="other", text="")
    given = replace(
        GIFT,
        documents=(*GIFT.documents, other),
        chunks=(*GIFT.chunks, *(GivenChunk(id=f"o{at}", document="other", text=f"Line {at}.") for at in range(3))),
    )
    graphs = []
    for size in (1_000, 1, 2):
        monkeypatch.setattr(importing, "SEGMENT", size)
        client = open_client()
        assert importing.import_graph(client._services(None), given)
        found = dump(settings, client.corpus)
        check(found)
        ids = {uid: chunk["source_id"] for uid, chunk in found.of("Chunk").items()}
        following = sorted((ids[here], ids[after]) for here, after, _ in found.joined("NEXT_CHUNK"))
        assert following == [("c1", "c2"), ("c2", "c3"), ("o0", "o1"), ("o1", "o2")]
        graphs.append((names(found), relations(found).keys(), len(found.joined("FROM_CHUNK"))))
        client.delete()
    assert graphs[1:] == graphs[:1] * 2


def test_the_same_graph_again_changes_nothing(client: HGMem, settings: Settings) -> None:
    client.add_graph(GIFT)
    client.add_graph(Given(documents=(Document(id="bare", text=""),)))
    before = dump(settings, client.corpus, times=True)
    client.add_graph(GIFT)
    client.add_graph(Given(documents=(Document(id="bare", text=""),)))
    assert dump(settings, client.corpus, times=True) == before


def test_two_graphs_unite(client: HGMem, settings: Settings) -> None:
    second = Given(
        documents=(Document(id="letter", text="ADA is a clerk."),),
        chunks=(GivenChunk(id="c1", document="letter", text="ADA is a clerk.", start=0),),
        entities=(
            GivenEntity(name="ADA", type="clerk", description="A clerk.", chunks=("c1",)),
            GivenEntity(name="Aurora", type="ship", description="A ferry."),
        ),
        relations=(GivenRelation(source="ADA", target="bo", description="They wrote.", weight=3.0),),
    )
    client.add_graph(GIFT)
    client.add_graph(second)
    found = dump(settings, client.corpus)

    assert names(found) == ["ADA", "Aurora", "Bo", "Cy", "Port Ellis"]
    assert entity(found, client, "ada")["description"] == "Met Bo.\nA clerk."
    assert entity(found, client, "aurora")["description"] == "A ferry."
    assert relations(found)["ADA", "Bo"]["description"] == "They met.\nThey wrote."
    assert relations(found)["ADA", "Bo"]["weight"] == 4.0
    check(found)
    before = dump(settings, client.corpus, times=True)
    client.add_graph(second)
    client.add_graph(GIFT)
    assert dump(settings, client.corpus, times=True) == before


def test_chunks_that_come_later_are_put_in_order_with_those_that_are_there(client: HGMem, settings: Settings) -> None:
    first = Given(documents=GIFT.documents, chunks=GIFT.chunks[::2])
    client.add_graph(first)
    client.add_graph(Given(documents=GIFT.documents, chunks=GIFT.chunks))
    found = dump(settings, client.corpus)
    following = {here: after for here, after, _ in found.joined("NEXT_CHUNK")}
    assert len(found.of("Chunk")) == 3
    assert len(found.joined("NEXT_CHUNK")) == len(following) == 2


def test_a_graph_unites_with_what_was_extracted(open_client: Open, settings: Settings) -> None:
    extraction = Extraction(
        entities=(ExtractedEntity(name="Ada", description="Reads."),),
        relations=(ExtractedRelation(source="Ada", target="Bo", description="Ada writes to Bo."),),
    )
    client = open_client(model=ScriptedModel({"extract": lambda _: extraction}))
    client.add(Document(id="d", text="one"))
    client.add_graph(GIFT)
    one_way = dump(settings, client.corpus)
    check(one_way)
    assert entity(one_way, client, "Ada")["description"] == "Met Bo.\nReads."
    client.delete()
    client.add_graph(GIFT)
    client.add(Document(id="d", text="one"))
    assert dump(settings, client.corpus) == one_way


def test_a_graph_over_a_chunk_that_is_still_to_be_folded_waits_for_its_indexing(
    open_client: Open, settings: Settings
) -> None:
    extraction = Extraction(entities=(ExtractedEntity(name="Cy", description="Waits."),))

    class Failing(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if texts not in (["one"], [client.corpus]):
                raise ModelError("the embedder is gone")
            return super().embed(texts, kind=kind)

    def open_(**given: Any) -> HGMem:
        return open_client(model=ScriptedModel({"extract": lambda _: extraction}), **given)

    document = Document(id="d", text="one")
    given = Given(
        documents=(document,),
        chunks=(GivenChunk(id="c1", document="d", text="one"),),
        entities=(GivenEntity(name="Ada", description="Met Bo.", chunks=("c1",)),),
    )
    client = open_()
    with pytest.raises(ModelError, match="the embedder is gone"):
        open_(embedder=Failing()).add(document)
    with pytest.raises(ConflictError, match="index them, then add the graph again"):
        client.add_graph(given)
    (chunk,) = dump(settings, client.corpus).of("Chunk").values()
    assert chunk["status"] == "extracted"

    client.add(document)
    client.add_graph(given)
    found = dump(settings, client.corpus)
    check(found)
    assert names(found) == ["Ada", "Cy"]


def many(documents: int) -> Given:
    """Return a graph of `documents` documents, each with two chunks, all of which name Ada."""
    ids = [f"d{number}" for number in range(documents)]
    return Given(
        documents=tuple(Document(id=id_, text="") for id_ in ids),
        chunks=tuple(
            GivenChunk(id=f"{id_}-{part}", document=id_, text=f"Ada, {part}.") for id_ in ids for part in "ab"
        ),
        entities=(GivenEntity(name="Ada", chunks=tuple(f"{id_}-a" for id_ in ids)),),
    )


def test_many_documents_take_as_many_statements_as_one(client: HGMem, settings: Settings) -> None:
    client.add([Document(id="first", text="Bo came.")], graph=False)  # the corpus and its language exist
    calls = []
    for documents in (1, 40):
        with measuring() as meter:
            client.add_graph(many(documents))
        calls.append(meter.usage().calls["neo4j"])
    found = dump(settings, client.corpus)

    # The second time, Ada exists: she is written without a vector, which is looked up afterwards, and no entity is new
    # to the builds, or to decisions.
    of_vectors = {"missing_entity_vectors", "lock_corpus", "mark_builds", "decided_entities"}
    counted = [{name: number for name, number in each.items() if name not in of_vectors} for each in calls]
    assert counted[1] == counted[0]
    assert (len(found.of("Document")), len(found.of("Chunk")), len(found.joined("NEXT_CHUNK"))) == (41, 81, 40)
    check(found)


def test_a_vector_made_for_a_new_entity_is_dropped_where_another_described_it_first(
    open_client: Open, settings: Settings
) -> None:
    class Overtaken(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if not overtaking:
                overtaking.append(True)
                other.add_graph(Given(entities=(GivenEntity(name="Ada", description="Wrote first."),)))
            return super().embed(texts, kind=kind)

    overtaking: list[bool] = []
    other, client = open_client(), open_client(embedder=Overtaken())
    client.add_graph(Given(entities=(GivenEntity(name="Ada", description="Wrote second."),)))
    found = dump(settings, client.corpus)
    assert overtaking
    assert entity(found, client, "Ada")["description"] == "Wrote first.\nWrote second."
    check(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (replace(GIFT, entities=(GivenEntity(name="Ada", chunks=("c9",)),)), "entity 'Ada' refers to chunk 'c9'"),
        (
            replace(GIFT, relations=(GivenRelation(source="Ada", target="Bo", chunks=("c9",)),)),
            "relation 'Ada' to 'Bo' refers to chunk 'c9'",
        ),
        (replace(GIFT, chunks=(GivenChunk(id="c1", document="other", text="x"),)), "'c1' refers to document 'other'"),
        (replace(GIFT, chunks=(*GIFT.chunks, GIFT.chunks[0])), "chunk id 'c1' is a duplicate"),
        (replace(GIFT, documents=GIFT.documents * 2), "document id 'log' is a duplicate"),
        (
            replace(GIFT, chunks=(replace(GIFT.chunks[0], start=1), *GIFT.chunks[1:])),
            "chunk 'c1' does not match the text of document 'log' at 1",
        ),
    ],
)
def test_a_graph_whose_references_fail_is_refused_before_anything_is_written(
    client: HGMem, given: Given, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        client.add_graph(given)
    with pytest.raises(UsageError, match=said):
        importing.import_graph(client._services(None), given)
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


def test_self_loops_and_names_without_a_key_are_dropped(client: HGMem, settings: Settings) -> None:
    client.add_graph(
        Given(
            entities=(GivenEntity(name="Ada"), GivenEntity(name=" \u3000")),
            relations=(GivenRelation(source="Ada", target="ADA"), GivenRelation(source="Ada", target=" ")),
        )
    )
    found = dump(settings, client.corpus)
    assert (names(found), relations(found)) == (["Ada"], {})


def test_graphs_given_at_the_same_time_end_in_one_graph(open_client: Open, settings: Settings) -> None:
    client, other = open_client(), open_client()
    second = replace(GIFT, documents=(replace(GIFT.documents[0], id="copy"),))
    second = replace(second, chunks=tuple(replace(chunk, document="copy") for chunk in GIFT.chunks))
    raised: list[BaseException] = []

    def give(opened: HGMem, given: Given) -> None:
        try:
            opened.add_graph(given)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=give, args=one) for one in ((client, GIFT), (other, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = dump(settings, client.corpus)
    assert raised == []
    assert relations(found)["Aurora", "Bo"]["weight"] == 5.0
    assert len(json.loads(str(entity(found, client, "Ada")["given"]))) == 2
    check(found)


# LightRAG directories -------------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A small working directory of two documents."""
    texts = {"d1": TEXT, "d2": "Ada went to sea. The Aurora was lost."}
    chunks = {
        "c1": ("d1", 0, "Ada met Bo in Port Ellis."),
        "c2": ("d1", 1, "Bo sails the Aurora."),
        "c3": ("d2", 0, "Ada went to sea."),
        "c4": ("d2", 1, "The Aurora was lost."),
    }
    nodes = {"ADA": "c1<SEP>c3", "BO": "c1<SEP>c2", "AURORA": "c2<SEP>c4", "PORT ELLIS": "c1"}
    edges = {("ADA", "BO"): "c1", ("BO", "AURORA"): "c2<SEP>c4", ("PORT ELLIS", "AURORA"): "c4"}
    (tmp_path / DOCUMENTS).write_text(json.dumps({id_: {"content": text} for id_, text in texts.items()}))
    (tmp_path / CHUNKS).write_text(
        json.dumps(
            {
                id_: {"content": text, "full_doc_id": document, "chunk_order_index": number}
                for id_, (document, number, text) in chunks.items()
            }
        )
    )
    fields = {"d0": "entity_type", "d1": "description", "d2": "source_id", "d3": "weight"}
    keys = "".join(f'<key id="{id_}" for="all" attr.name="{name}"/>' for id_, name in fields.items())
    drawn = "".join(
        f'<node id={quoteattr(name)}><data key="d0">"THING"</data>'
        f'<data key="d1">{escape(name.title())} in {sources.replace("<SEP>", " and ")}.</data>'
        f'<data key="d2">{escape(sources)}</data></node>'
        for name, sources in nodes.items()
    ) + "".join(
        f'<edge source={quoteattr(one)} target={quoteattr(other)}><data key="d3">2.0</data>'
        f'<data key="d1">Of {escape(one)}.</data><data key="d2">{escape(sources)}</data></edge>'
        for (one, other), sources in edges.items()
    )
    (tmp_path / GRAPH).write_text(f"<graphml>{keys}<graph>{drawn}</graph></graphml>")
    return tmp_path


def test_a_directory_is_imported_whole(client: HGMem, settings: Settings, directory: Path) -> None:
    assert client.import_lightrag(directory)
    found, status = dump(settings, client.corpus), client.status()

    assert (status.status, status.documents, status.chunks) == ("ready", 2, 4)
    assert (status.entities, status.relations) == (4, 3)
    assert {one["type"] for one in found.of("Entity").values()} == {"THING"}
    assert len(found.joined("FROM_CHUNK")) == 7
    assert relations(found)["AURORA", "PORT ELLIS"]["weight"] == 2.0
    check(found)


def test_the_same_directory_again_writes_nothing(client: HGMem, settings: Settings, directory: Path) -> None:
    client.import_lightrag(directory)
    before = dump(settings, client.corpus, times=True)
    assert client.import_lightrag(directory) is False
    assert dump(settings, client.corpus, times=True) == before


def test_an_import_into_a_corpus_that_holds_something_is_refused(
    client: HGMem, settings: Settings, directory: Path
) -> None:
    client.add_graph(Given(entities=(GivenEntity(name="Ada"),)))
    before = dump(settings, client.corpus, times=True)
    with pytest.raises(UsageError, match="holds 0 documents, 1 entities and 0 memories: import into a new corpus"):
        client.import_lightrag(directory)
    assert dump(settings, client.corpus, times=True) == before


def test_another_directory_into_an_imported_corpus_is_refused(
    client: HGMem, settings: Settings, directory: Path
) -> None:
    client.import_lightrag(directory)
    before = dump(settings, client.corpus, times=True)
    (directory / GRAPH).write_text((directory / GRAPH).read_text().replace("2.0", "3.0"))
    with pytest.raises(UsageError, match="holds 2 documents, 4 entities"):
        client.import_lightrag(directory)
    assert dump(settings, client.corpus, times=True) == before


class Failing(DeterministicEmbedder):
    """Fails after some calls."""

    def __init__(self, calls: int, error: BaseException) -> None:
        super().__init__()
        self.calls, self.error = calls, error

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.calls -= 1
        if self.calls < 0:
            raise self.error
        return super().embed(texts, kind=kind)


@pytest.mark.parametrize("error", [ModelError("the embedder is gone"), KeyboardInterrupt()])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_failed_import_leaves_nothing(
    open_client: Open, settings: Settings, directory: Path, calls: int, error: BaseException
) -> None:
    client = open_client(embedder=Failing(calls, error))
    with pytest.raises(type(error)):
        client.import_lightrag(directory)
    assert dump(settings, client.corpus).nodes == {}
    assert open_client().import_lightrag(directory)


def leave_behind(client: HGMem, *, run: str, timeout: float = 60) -> None:
    """Leave the corpus as after a killed import, or as during a running one."""
    database = client._database
    create_corpus(database, corpus=client.corpus, status="importing", embedder=("another", 3), settings={})
    assert lease_corpus(database, corpus=client.corpus, run=run, status="importing", timeout=timeout)


def test_readers_and_writers_refuse_a_corpus_that_is_being_imported(client: HGMem, settings: Settings) -> None:
    leave_behind(client, run="alive")
    before = dump(settings, client.corpus)
    for refused in (
        lambda: client.ask("Who is Ada?"),
        lambda: client.ask("Who is Ada?", system="naive"),
        lambda: client.add(Document(id="d", text="one")),
        lambda: client.add_graph(GIFT),
        lambda: client.delete(document="d"),
    ):
        with pytest.raises(
            UsageError, match=r"is not ready \(status importing\): wait until that operation ends, or run it again"
        ) as raised:
            refused()
        assert "\n" not in str(raised.value)
    assert client.status().status == "importing"
    assert dump(settings, client.corpus) == before


def test_an_import_that_lives_refuses_a_second(client: HGMem, settings: Settings, directory: Path) -> None:
    leave_behind(client, run="alive")
    before = dump(settings, client.corpus)
    with pytest.raises(ConflictError, match="is being imported by another process"):
        client.import_lightrag(directory)
    assert dump(settings, client.corpus) == before


def test_a_killed_import_is_removed_by_the_next(open_client: Open, settings: Settings, directory: Path) -> None:
    client = open_client(claim_timeout=0.3, heartbeat=0.1)
    client.import_lightrag(directory)
    wanted = dump(settings, client.corpus)
    client.delete()
    leave_behind(client, run="killed", timeout=0.3)
    with driver(settings) as opened:
        opened.execute_query(
            "CREATE (:Entity {uid: $corpus + 'left', corpus: $corpus, memory: ''})-[:FROM_CHUNK]->"
            "(:Chunk {uid: $corpus + 'left', corpus: $corpus})",
            corpus=client.corpus,
        )
    time.sleep(0.5)

    assert client.import_lightrag(directory)
    assert dump(settings, client.corpus) == wanted


def test_an_import_that_lost_its_corpus_leaves_it_to_the_one_that_holds_it(
    open_client: Open, settings: Settings, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_client(claim_timeout=0.1, heartbeat=0.05)

    class Slow(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if not taken:
                taken.append(True)
                time.sleep(0.3)
                other.import_lightrag(directory)  # takes over an expired lease
            return super().embed(texts, kind=kind)

    taken: list[bool] = []
    client = open_client(embedder=Slow(), heartbeat=60, claim_timeout=90)
    with pytest.raises(Exception, match=r"uid|no longer held"):
        client.import_lightrag(directory)
    found = dump(settings, other.corpus)
    assert taken
    assert other.status().status == "ready"
    check(found)
    other.delete()
    other.import_lightrag(directory)
    assert dump(settings, other.corpus) == found


def test_a_claim_is_renewed_while_an_import_lasts(open_client: Open, directory: Path) -> None:
    seen: list[int | None] = []

    class Slow(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if not seen:
                time.sleep(1.2)
                row = find_corpus(client._database, corpus=client.corpus)
                assert row
                seen.append(row.silent)
                with pytest.raises(ConflictError):
                    rival.import_lightrag(directory)
            return super().embed(texts, kind=kind)

    rival = open_client(claim_timeout=1, heartbeat=0.2)
    client = open_client(embedder=Slow(), heartbeat=0.2)
    assert client.import_lightrag(directory)
    assert seen in ([0], [-1])  # whole seconds, rounded down: the lease may be renewed during the read


def test_a_novels_graph_has_the_counts_of_its_files(client: HGMem, settings: Settings, shared: Path) -> None:
    assert client.import_lightrag(shared / "gods_of_mars")
    status, found = client.status(), dump(settings, client.corpus)

    assert (status.entities, status.relations, status.chunks, status.documents) == (1279, 1791, 754, 1)
    assert len(found.joined("FROM_CHUNK")) == 3799
    assert len(found.joined("NEXT_CHUNK")) == 753
    assert not [one for one in found.of("Entity").values() if '"' in one["type"]]
    assert not [chunk for chunk in found.of("Chunk").values() if chunk.get("start") is None]
    check(found)
    before = dump(settings, client.corpus, times=True)
    assert client.import_lightrag(shared / "gods_of_mars") is False
    assert dump(settings, client.corpus, times=True) == before


# Deleting -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documents(affair: Path) -> list[Document]:
    found = [item for item in load(affair, max_bytes=10**6) if isinstance(item, Document)]
    return found[:4]


def test_deleting_documents_leaves_what_an_index_of_the_others_would_be(
    open_client: Callable[..., HGMem], settings: Settings, documents: list[Document]
) -> None:
    client = open_client(resolve=False)  # decisions outlive their entities
    client.add(documents)
    for gone in (documents[1], documents[3]):
        client.delete(document=uid(client.corpus, "document", gone.id or gone.source))
    found = dump(settings, client.corpus)
    check(found)
    client.delete()
    client.add([documents[0], documents[2]])
    assert dump(settings, client.corpus) == found


@pytest.mark.parametrize(
    ("before", "gone", "error"),
    [
        ("in_order", "(n:Entity {key: 'cy'})", "endpoints of 1 relations were deleted"),
        ("link_chunks", "(n:Document)", "1 documents of corpus .* were deleted during the call"),
    ],
)
def test_what_is_deleted_while_a_graph_is_added_is_said(
    client: HGMem, settings: Settings, monkeypatch: pytest.MonkeyPatch, before: str, gone: str, error: str
) -> None:
    called = getattr(adding, before)

    def deleting(*given: Any, **named: Any) -> Any:
        with driver(settings) as held:
            held.execute_query(f"MATCH {gone} WHERE n.corpus = $corpus DETACH DELETE n", corpus=client.corpus)
        return called(*given, **named)

    monkeypatch.setattr(adding, before, deleting)
    with pytest.raises(ConflictError, match=error):
        client.add_graph(GIFT)


def test_deleting_the_last_document_leaves_only_the_corpus(client: HGMem, settings: Settings) -> None:
    client.add(Document(id="d", text="Ada Rhee met Bo Lind in Port Ellis."))
    client.add_graph(GIFT)
    for row in client.documents():
        client.delete(document=str(row["uid"]))
    found = dump(settings, client.corpus)
    assert {label for labels, _ in found.nodes.values() for label in labels} == {"Corpus", "Entity"}
    assert names(found) == ["Aurora"]  # added without a chunk: it stays
    assert found.relationships.total() == 0
    check(found)


def test_an_unknown_document_is_named(client: HGMem) -> None:
    client.add(Document(id="d", text="one"))
    with pytest.raises(UsageError, match="has no document 'nothing'"):
        client.delete(document="nothing")


def test_what_is_given_goes_with_the_last_of_its_chunks(client: HGMem, settings: Settings) -> None:
    other = Given(
        documents=(Document(id="other", text="Bo sings."),),
        chunks=(GivenChunk(id="o1", document="other", text="Bo sings."),),
        entities=(GivenEntity(name="Bo", type="singer", description="Sings.", chunks=("o1",)),),
        relations=(GivenRelation(source="Bo", target="Aurora", description="Sings of it.", chunks=("o1",)),),
    )
    client.add_graph(GIFT)
    client.add_graph(other)
    client.delete(document=uid(client.corpus, "document", "log"))
    found = dump(settings, client.corpus)

    assert names(found) == ["Aurora", "Bo"]
    assert entity(found, client, "Bo")["description"] == "Sings."
    assert "captain" not in str(found)
    assert "He sails it." not in str(found)
    check(found)
    client.delete()
    client.add_graph(Given(entities=GIFT.entities[2:]))
    client.add_graph(other)
    assert dump(settings, client.corpus) == found

    client.add_graph(GIFT)
    client.delete(document=uid(client.corpus, "document", "other"))
    again = dump(settings, client.corpus)
    client.delete()
    client.add_graph(GIFT)
    assert dump(settings, client.corpus) == again


def test_a_contribution_that_lost_its_chunks_does_not_come_back_with_them(client: HGMem, settings: Settings) -> None:
    client.add_graph(GIFT)
    client.add_graph(Given(entities=(GivenEntity(name="Ada", description="Is known."),)))
    client.delete(document=uid(client.corpus, "document", "log"))
    client.add_graph(
        Given(documents=GIFT.documents, chunks=GIFT.chunks, entities=(GivenEntity(name="Ada", chunks=("c1",)),))
    )
    assert entity(dump(settings, client.corpus), client, "Ada")["description"] == "Is known."


def test_a_relation_that_others_support_keeps_both_its_ends(client: HGMem, settings: Settings) -> None:
    client.add_graph(
        Given(
            documents=(Document(id="one", text="Ada."), Document(id="two", text="Bo sails with her.")),
            chunks=(
                GivenChunk(id="c1", document="one", text="Ada."),
                GivenChunk(id="c2", document="two", text="Bo sails with her."),
            ),
            entities=(
                GivenEntity(name="Ada", type="person", description="A secret.", chunks=("c1",)),
                GivenEntity(name="Bo", type="person", description="Sails.", chunks=("c2",)),
            ),
            relations=(GivenRelation(source="Ada", target="Bo", description="They sail.", chunks=("c2",)),),
        )
    )
    client.delete(document=uid(client.corpus, "document", "one"))
    found = dump(settings, client.corpus)
    assert list(relations(found)) == [("Ada", "Bo")]
    assert (entity(found, client, "Ada")["type"], entity(found, client, "Ada")["description"]) == ("person", "")
    assert "secret" not in str(found)

    client.delete(document=uid(client.corpus, "document", "two"))
    assert names(dump(settings, client.corpus)) == []


def test_deleting_a_corpus_leaves_the_others_untouched(
    client: HGMem, open_client: Open, settings: Settings, corpus: str
) -> None:
    other = open_client(corpus=f"{corpus}.2")
    for opened in (client, other):
        opened.add_graph(GIFT)
        opened.ask("Where did Ada meet Bo?")
    before = dump(settings, other.corpus, times=True)
    client.delete()

    assert dump(settings, client.corpus).nodes == {}
    assert dump(settings, other.corpus, times=True) == before
    with pytest.raises(UsageError, match=r"corpus .* not found"):
        client.delete()


# Data of memories -----------------------------------------------------------------------------------------------


@pytest.fixture
def asked(client: HGMem, documents: list[Document]) -> tuple[HGMem, str]:
    """A corpus with a memory."""
    client.add(documents)
    answer = client.ask("Who took the Ravensund Orrery before the Corrie Vane sailed?", steps=2)
    assert answer.citations
    return client, answer.memory


def test_a_memory_keeps_its_points_their_entities_and_its_quotes(
    asked: tuple[HGMem, str], settings: Settings, documents: list[Document]
) -> None:
    client, memory = asked
    before = client.memory(memory)
    (answer,) = before.answers
    for row in client.documents():
        client.delete(document=str(row["uid"]))
    after, found = client.memory(memory), dump(settings, client.corpus)

    assert names(found) == []
    assert client.status().entities == 0
    assert [point.uid for point in after.points] == [point.uid for point in before.points]
    for old, new in zip(before.points, after.points, strict=True):
        assert sorted(entity.name for entity in new.entities) == sorted(entity.name for entity in old.entities)
        assert all(entity.provisional for entity in new.entities)
        assert new.chunks == ()
    (kept,) = after.answers
    assert [citation.quote for citation in kept.citations] == [citation.quote for citation in answer.citations]
    assert all(citation.withdrawn for citation in kept.citations)
    assert found.joined("CITES") == []
    provisional = found.of("Provisional").values()
    assert {one["memory"] for one in provisional} == {memory}
    for one in provisional:
        check_vector(one["embedding"], entity_text(one["name"], one["description"]))


def test_a_memory_is_untouched_by_what_it_does_not_hold(
    asked: tuple[HGMem, str], settings: Settings, documents: list[Document]
) -> None:
    client, memory = asked
    before, held = client.memory(memory), dump(settings, client.corpus)
    client.add(Document(id="more", text="Zacharias Quill sold Umberholm to the Fennimore Trust."))
    client.delete(document=uid(client.corpus, "document", "more"))
    assert client.memory(memory) == before
    assert dump(settings, client.corpus) == held


def test_an_entity_that_two_memories_involve_stays_in_each(
    client: HGMem, settings: Settings, documents: list[Document]
) -> None:
    client.add(documents)
    memories = [client.ask("Who took the Ravensund Orrery?", steps=1).memory for _ in range(2)]
    before = [client.memory(memory) for memory in memories]
    for row in client.documents():
        client.delete(document=str(row["uid"]))
    found = dump(settings, client.corpus)
    for old, memory in zip(before, memories, strict=True):
        involved = {entity.name for point in old.points for entity in point.entities}
        kept = [one["name"] for one in found.of("Provisional").values() if one["memory"] == memory]
        assert sorted(kept) == sorted(involved)
    assert {source for source, _, _ in found.joined("INVOLVES")} <= found.of("MemoryPoint").keys()


def test_answering_changes_nothing_of_the_corpus(client: HGMem, settings: Settings, documents: list[Document]) -> None:
    client.add(documents)
    before = dump(settings, client.corpus, times=True)
    client.ask("Who took the Ravensund Orrery before the Corrie Vane sailed?", steps=2)
    after = dump(settings, client.corpus, times=True)
    kept = {name: node for name, node in after.nodes.items() if node[1].get("memory", "") == ""}
    assert kept == before.nodes
    of_corpus = {"FROM_DOCUMENT", "NEXT_CHUNK", "FROM_CHUNK"}
    assert {one for one in after.relationships if json.loads(one)[0] in of_corpus} == {
        one for one in before.relationships if json.loads(one)[0] in of_corpus
    }
    assert [one for _, _, one in after.joined("RELATES") if not one["memory"]] == [
        one for _, _, one in before.joined("RELATES")
    ]
