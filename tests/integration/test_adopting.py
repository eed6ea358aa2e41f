"""Import of graphs from Neo4j's GraphRAG package: complete, once, and without changes to the source graph.

The graph is a recording of the package's own pipeline (tests/golden/neo4j_graphrag.json). The test marked `long`
installs the package into its own environment, lets it write again, and compares; `--rewrite-golden` records the graph.
"""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dumping import check, driver, dump
from neo4j import Driver
from recorded import BARE, GOLDEN, KNOWN, PAPERS, Graph, clear, of, put, record, stored
from typer.testing import CliRunner

from hgmem import HGMem
from hgmem.cli import app
from hgmem.corpus import importing
from hgmem.errors import GraphError, ModelError, UsageError
from hgmem.graph.database import Database
from hgmem.local import Server
from hgmem.models.embedding import TextKind, Vectors
from hgmem.settings import Settings
from hgmem.sources.graphrag import assembled
from hgmem.testing import DeterministicEmbedder
from hgmem.text.identity import key
from hgmem.values.foreign_graph import Shape

ADOPT = ("import", "neo4j-graphrag")
WRITER = Path(__file__).parents[1] / "graphrag_writer.py"
RENAMED = {
    "Document": "File",
    "Chunk": "Passage",
    "__Entity__": "Thing`of (theirs)",
    "FROM_DOCUMENT": "IN FILE",
    "NEXT_CHUNK": "THEN",
    "FROM_CHUNK": "SEEN_IN",
    "text": "body",
    "index": "number",
    "name": "title",
}
NAMED = {
    "document_label": "File",
    "chunk_label": "Passage",
    "entity_label": "Thing`of (theirs)",
    "document_relationship": "IN FILE",
    "next_relationship": "THEN",
    "entity_relationship": "SEEN_IN",
    "text_property": "body",
    "index_property": "number",
    "name_property": "title",
}
THEIRS = """
MATCH (n) WHERE n.uid IS NULL OR n.corpus IS NULL
WITH n WHERE NOT n:Corpus AND NOT n:Step AND NOT n:SubQuery
RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties,
       COLLECT { MATCH (n)-[r]-(o) WITH r, o ORDER BY elementId(r)
                 RETURN [elementId(r), type(r), properties(r), elementId(o)] } AS links
ORDER BY id
"""


@pytest.fixture
def theirs(settings: Settings, client: HGMem) -> Iterator[Driver]:
    """A driver of the client's database, which contains only hgmem's data."""
    with driver(settings) as opened:
        clear(opened)
        yield opened
        clear(opened)


@pytest.fixture
def graph(theirs: Driver) -> Graph:
    """Writes the recorded graph into the database."""
    recorded = stored()
    put(theirs, recorded)
    return recorded


def as_it_is(theirs: Driver) -> str:
    """Return the whole source graph with all properties."""
    return json.dumps([row.data() for row in theirs.execute_query(THEIRS)[0]], default=str, sort_keys=True)


# Complete, once, beside the source graph --------------------------------------------------------------------------


def test_a_graph_of_the_package_is_adopted_whole(client: HGMem, settings: Settings, graph: Graph) -> None:
    done = client.adopt()
    found = dump(settings, client.corpus)
    entities, chunks = of(graph, "__Entity__"), of(graph, "Chunk")

    assert done.written
    assert (done.documents, done.chunks) == (len(PAPERS) + 1, len(chunks))
    assert done.entities == len({key(each["name"]) for each in entities})
    assert done.entities < len(entities)
    assert {each["text"] for each in found.of("Chunk").values()} == {each["text"] for each in chunks}
    assert {each["name"] for each in found.of("Entity").values()} == {each["name"] for each in entities}
    assert f"{len(entities) - done.entities} entities were merged with others of the same name" in done.notes
    assert "1 document was created for chunks without one" in done.notes
    check(found)

    sources = {each["source"]: each for each in found.of("Document").values()}
    assert sources.keys() == {f"papers/{name}.txt" for name in PAPERS} | {""}
    assert json.loads(sources[f"papers/{PAPERS[0]}.txt"]["metadata"])["year"] == "1922"
    assert sources[""]["title"] == "Nobody knows where this page is from. It stands alone here,"
    for uid, document in found.of("Document").items():
        mine = sorted(
            (each for each in found.of("Chunk").values() if each["document"] == uid), key=lambda each: each["position"]
        )
        numbers = [each["index"] for one in mine for each in chunks if each["text"] == one["text"]]
        assert numbers == list(range(len(mine))), document["title"]


def test_names_types_and_properties_arrive(client: HGMem, settings: Settings, graph: Graph) -> None:
    client.adopt()
    found = dump(settings, client.corpus)
    entities = {each["name"]: each for each in found.of("Entity").values()}
    assert (entities["Ivo Tranmoor"]["type"], entities["Corrie Vane"]["type"]) == ("Person", "Ship")
    assert entities["Ivo Tranmoor"]["description"] == "Master of the Corrie Vane.\nships: 3"
    assert entities["Corrie Vane"]["description"] == "funnels: 1\nlost: true"
    assert entities["Ravensund Orrery"]["description"] == "also known as: the orrery, the planets"

    uids = {uid: each["name"] for uid, each in found.of("Entity").items()}
    relations = {frozenset((uids[a], uids[b])): said for a, b, said in found.joined("RELATES")}
    said = relations[frozenset(("Ivo Tranmoor", "Corrie Vane"))]
    assert "commands" in said["keywords"]
    lines = said["description"].splitlines()  # the server's ids order them
    assert any(line.startswith("Ivo Tranmoor commands Corrie Vane (order: ") for line in lines)
    mentions = {(uids[entity], chunk) for entity, chunk, _ in found.joined("FROM_CHUNK")}
    texts = {uid: each["text"] for uid, each in found.of("Chunk").items()}
    assert mentions == {(name, uid) for uid, text in texts.items() for name in KNOWN if name in text}


def test_the_same_graph_again_writes_nothing(client: HGMem, settings: Settings, graph: Graph) -> None:
    first = client.adopt()
    before = dump(settings, client.corpus, times=True)
    again = client.adopt()
    assert (first.written, again.written) == (True, False)
    assert (again.chunks, again.relations, again.notes) == (first.chunks, first.relations, first.notes)
    assert dump(settings, client.corpus, times=True) == before


def test_theirs_stays_as_it_is_whatever_becomes_of_the_copy(client: HGMem, theirs: Driver, graph: Graph) -> None:
    before = as_it_is(theirs)
    client.adopt()
    client.ask("Who brought the Ravensund Orrery to Quillane Wharf?", steps=2)
    assert as_it_is(theirs) == before
    client.delete()
    assert as_it_is(theirs) == before
    assert len(json.loads(before)) == len(graph["nodes"])


def test_questions_are_answered_and_cite_adopted_chunks(client: HGMem, graph: Graph) -> None:
    client.adopt()
    answer = client.ask("Who brought the crate of the Ravensund Orrery to Quillane Wharf?", steps=2)
    texts = [each["text"] for each in of(graph, "Chunk")]
    assert "Josse Arkwell" in answer.text
    assert answer.citations
    assert all(any(citation.quote in text for text in texts) for citation in answer.citations)
    assert client.memory(answer.memory).points
    assert client.check().findings == ()


def test_two_corpora_of_one_graph_are_the_same_but_for_their_names(
    client: HGMem, open_client: Callable[..., HGMem], graph: Graph
) -> None:
    other = open_client(corpus=f"{client.corpus}-b")
    first, second = client.adopt(), other.adopt()
    assert (first.chunks, first.entities, first.relations) == (second.chunks, second.entities, second.relations)
    assert asyncio.run(client.aadopt()).written is False


def test_a_corpus_that_holds_something_is_refused(
    client: HGMem, settings: Settings, theirs: Driver, graph: Graph
) -> None:
    client.adopt()
    before = dump(settings, client.corpus, times=True)
    theirs.execute_query("MATCH (e:__Entity__ {name: 'Corrie Vane'}) SET e.funnels = 2")
    with pytest.raises(UsageError, match=r"holds 6 documents, .* import into a new corpus, or delete this one first"):
        client.adopt()
    assert dump(settings, client.corpus, times=True) == before


class Failing(DeterministicEmbedder):
    """Fails after the chunks."""

    calls = 2

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.calls -= 1
        if not self.calls:
            raise ModelError("the embedder is gone")
        return super().embed(texts, kind=kind)


def test_an_adoption_that_fails_leaves_theirs_and_nothing_else(
    open_client: Callable[..., HGMem], settings: Settings, theirs: Driver, graph: Graph
) -> None:
    before, client = as_it_is(theirs), open_client(embedder=Failing())
    with pytest.raises(ModelError, match="the embedder is gone"):
        client.adopt()
    assert dump(settings, client.corpus).nodes == {}
    assert as_it_is(theirs) == before


# Other names and databases ----------------------------------------------------------------------------------------


def test_labels_types_and_properties_may_have_other_names(
    client: HGMem, open_client: Callable[..., HGMem], theirs: Driver
) -> None:
    put(theirs, stored())
    usual = client.adopt()
    clear(theirs)
    put(theirs, stored(), renamed=RENAMED)
    named, configured = (open_client(corpus=f"{client.corpus}-{each}") for each in "bc")
    done = named.adopt(**NAMED)
    assert (done.documents, done.chunks, done.entities, done.relations) == (
        usual.documents,
        usual.chunks,
        usual.entities,
        usual.relations,
    )
    config = SimpleNamespace(
        document_node_label="File",
        chunk_node_label="Passage",
        chunk_to_document_relationship_type="IN FILE",
        next_chunk_relationship_type="THEN",
        node_to_chunk_relationship_type="SEEN_IN",
        chunk_text_property="body",
        chunk_index_property="number",
        chunk_embedding_property="embedding",
    )
    again = configured.adopt(config=config, entity_label="Thing`of (theirs)", name_property="title")
    assert (again.chunks, again.entities, again.relations) == (done.chunks, done.entities, done.relations)


OTHERS = """
CREATE (a:Document {id: 'p1', text: 'Ada wrote to Bo.', source: 'letters.pdf'})
CREATE (b:Document {id: 'p2', text: 'Bo sailed on the Aurora.', source: 'letters.pdf'})
CREATE (ada:Person:__Entity__ {id: 'Ada'}), (bo:Person:__Entity__ {id: 'Bo'}), (ship:Ship:__Entity__ {id: 'Aurora'})
CREATE (a)-[:MENTIONS]->(ada)-[:WROTE_TO]->(bo)-[:SAILED_ON]->(ship), (a)-[:MENTIONS]->(bo)<-[:MENTIONS]-(b)
CREATE (b)-[:MENTIONS]->(ship), (:File {path: 'letters.pdf'})-[:HOLDS]->(a)-[:NEXT_CHUNK]->(b)
"""


def test_a_graph_whose_links_lead_the_other_way_is_adopted_too(
    client: HGMem, settings: Settings, theirs: Driver
) -> None:
    theirs.execute_query(OTHERS)
    done = client.adopt(
        document_label="File",
        chunk_label="Document",
        document_relationship="HOLDS",
        entity_relationship="MENTIONS",
        name_property="id",
    )
    found = dump(settings, client.corpus)
    assert (done.documents, done.chunks, done.entities, done.relations) == (2, 2, 3, 2)
    assert {each["source_id"] for each in found.of("Chunk").values()} == {"p1", "p2"}
    assert len(found.joined("FROM_CHUNK")) == 4
    assert {each["type"] for each in found.of("Entity").values()} == {"Person", "Ship"}


def test_another_server_is_read_over_its_own_connection(
    client: HGMem, open_client: Callable[..., HGMem], server: Server, theirs: Driver, graph: Graph
) -> None:
    password = server.password.get_secret_value()
    places: list[dict[str, Any]] = [
        {"from_driver": theirs},
        {"from_uri": server.uri, "from_password": password},
        {"from_database": "neo4j"},
    ]
    for number, place in enumerate(places):
        copy = open_client(corpus=f"{client.corpus}-{number}")
        assert copy.adopt(**place).chunks == len(of(graph, "Chunk"))
        assert copy.ask("Who commands the Corrie Vane?", steps=1).text
    theirs.verify_connectivity()  # the caller's driver is still open


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ({"from_database": "nowhere"}, UsageError, "has no database 'nowhere': check --from-database"),
        (
            {"from_uri": "bolt://127.0.0.1:1"},
            GraphError,
            "cannot be reached: check --from-uri and that its server is running",
        ),
        ({"from_uri": "bolt://u:p@127.0.0.1:1"}, UsageError, "--from-uri must not contain a user or password"),
        ({"from_uri": "nonsense"}, UsageError, "'nonsense' is not a Neo4j address"),
        ({"from_uri": "bolt://127.0.0.1:1", "from_driver": "any"}, UsageError, "cannot be combined: drop one"),
        ({"from_username": "neo4j"}, UsageError, "need --from-uri: pass it"),
    ],
)
def test_a_place_that_is_not_there_is_named(
    client: HGMem, place: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as raised:
        client.adopt(**place)
    assert "p@" not in str(raised.value)


def test_a_wrong_password_names_where_it_is_set(client: HGMem, server: Server) -> None:
    with pytest.raises(
        GraphError, match="rejected the credentials of user 'neo4j': check --from-username and HGMEM_FROM_PASSWORD"
    ):
        client.adopt(from_uri=server.uri, from_password="wrong")


# Missing and invalid data -----------------------------------------------------------------------------------------


def test_where_there_is_no_graph_what_is_there_is_named(client: HGMem, theirs: Driver) -> None:
    with pytest.raises(
        UsageError,
        match=r"no chunks, that is, nodes \(:Chunk\) .* other nodes there: none; name .* with --chunk-label",
    ):
        client.adopt()
    theirs.execute_query("UNWIND range(1, 3) AS n CREATE (:Passage {body: 'x'})")
    with pytest.raises(UsageError, match=r"other nodes there: \(:Passage\) 3; name the chunk label with --chunk-label"):
        client.adopt()
    with pytest.raises(
        UsageError,
        match=r"none of the 3 nodes \(:Passage\) has text in property 'text'; name .* with --text-property",
    ):
        client.adopt(chunk_label="Passage")
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


def test_what_the_graph_lacks_is_said_and_the_rest_adopted(client: HGMem, theirs: Driver, graph: Graph) -> None:
    done = client.adopt(entity_label="Entities", document_relationship="OF")
    assert (done.entities, done.relations, done.chunks) == (0, 0, len(of(graph, "Chunk")))
    assert (
        "no nodes (:Entities) found, so no entities were imported: name the entity label with --entity-label"
        in done.notes
    )
    assert (
        "no chunk is linked to a document by OF: name the relationship type with --document-relationship" in done.notes
    )
    assert client.check().findings == ()
    client.delete()
    done = client.adopt(entity_relationship="SEEN_IN")
    assert (
        "no entity is linked to a chunk by SEEN_IN: name the relationship type with --entity-relationship" in done.notes
    )
    assert client.check().findings == ()


BROKEN = """
CREATE (d:Document:__KGBuilder__ {path: 7, at: point({x: 1, y: 2}), took: duration('P1DT2H'),
                                  `odd``name`: [true, false]})
CREATE (a:Chunk {text: 'Ada met Bo.', index: 'first'})-[:FROM_DOCUMENT]->(d)
CREATE (b:Chunk {text: 'Bo\\u0000 left.', index: 0.5})-[:FROM_DOCUMENT]->(d)
CREATE (c:Chunk {index: 2})-[:FROM_DOCUMENT]->(d)
CREATE (e:Chunk {text: 5})-[:FROM_DOCUMENT]->(d)
CREATE (f:Chunk {text: '  '})
CREATE (g:Chunk {text: 'Cy waits 𝔰𝔬.', id: ['x']})
CREATE (a)-[:NEXT_CHUNK]->(b)-[:NEXT_CHUNK]->(c)-[:NEXT_CHUNK]->(a), (g)-[:NEXT_CHUNK]->(g), (b)-[:NEXT_CHUNK]->(a)
CREATE (a)-[:FROM_DOCUMENT]->(:Document {path: ''})
CREATE (ada:__Entity__:Person {name: 'Ada', born: date('1922-10-12'), seen: [datetime('2026-01-01T00:00:00Z')],
                               vector: [0.5, 0.25], small: [1], raw: $raw, empty: '', none: []})
CREATE (ada)-[:FROM_CHUNK]->(a), (ada)-[:FROM_CHUNK]->(c), (ada)-[:FROM_CHUNK]->(a)
CREATE (bo:__Entity__ {name: 'Bo'})-[:FROM_CHUNK]->(b), (a)<-[:FROM_CHUNK]-(bo)
CREATE (:__Entity__:Person)-[:KNOWS]->(ada), (ada)-[:KNOWS]->(ada), (:__Entity__ {name: 1922})-[:`  `]->(bo)
CREATE (ada)-[:MET {on: time('12:00Z'), where: point({longitude: 1, latitude: 2})}]->(bo), (ada)-[:MET]->(d)
CREATE (:__Entity__:Chunk {name: 'both', text: 'Both at once.'})-[:MET]->(ada)
"""


def test_a_broken_graph_is_adopted_as_far_as_it_goes(client: HGMem, settings: Settings, theirs: Driver) -> None:
    theirs.execute_query(BROKEN, raw=b"\x00\x01")
    done = client.adopt()
    found = dump(settings, client.corpus)
    entities = {each["name"]: each for each in found.of("Entity").values()}
    texts = [each["text"] for each in found.of("Chunk").values()]

    assert sorted(texts) == ["Ada met Bo.", "Bo left.", "Both at once.", "Cy waits 𝔰𝔬."]
    assert entities.keys() == {"Ada", "Bo", "1922"}
    assert entities["Ada"]["description"] == "born: 1922-10-12\nseen: 2026-01-01T00:00:00.000000000+00:00\nsmall: 1"
    assert set(done.notes) == {
        "3 chunks without text were skipped",
        "1 chunk of several documents was assigned to the first",
        "2 documents were created for chunks without one",
        "1 entity without a name in 'name' was skipped",
        "1 node is both (:__Entity__) and (:Chunk): imported as (:Chunk) only",
        "1 relation of a skipped entity was skipped",
        "1 relation of an entity with itself was skipped",
    }
    assert client.ask("Whom did Ada meet?", steps=1).text
    assert client.check().findings == ()
    check(found)
    assert client.adopt().written is False


def test_a_property_that_names_no_entity_is_refused_with_those_that_could(
    client: HGMem, theirs: Driver, graph: Graph
) -> None:
    entities = len(of(graph, "__Entity__"))
    said = (
        rf"none of the {entities} nodes \(:__Entity__\) has a name in property 'nosuch'; "
        rf"candidates: .*'name' {entities}.*"
        r"; name the property with --name-property"
    )
    with pytest.raises(UsageError, match=said):
        client.adopt(name_property="nosuch")
    assert client.corpus not in {row["corpus"] for row in client.corpora()}
    ships = sum("ships" in each for each in of(graph, "__Entity__"))
    done = client.adopt(name_property="ships")
    assert 0 < done.entities <= ships < entities
    assert f"{entities - ships} entities without a name in 'ships' were skipped" in done.notes


def test_nodes_that_are_two_things_at_once_are_counted(client: HGMem, theirs: Driver) -> None:
    theirs.execute_query(
        "CREATE (:Document:__Entity__ {path: 'a', name: 'A'}), (:Document:__Entity__ {path: 'b', name: 'B'}), "
        "(:Chunk {text: 'Ada.'}), (:Chunk:Document {text: 'Bo.'}), (:Chunk:__Entity__:Document {text: 'Cy.'})"
    )
    done = client.adopt()
    assert (done.chunks, done.entities) == (3, 0)
    assert [note for note in done.notes if "both" in note] == [
        "1 node is both (:__Entity__) and (:Chunk): imported as (:Chunk) only",
        "2 nodes are both (:__Entity__) and (:Document): imported as (:Document) only",
        "1 node is both (:Document) and (:Chunk): imported as (:Chunk) only",
    ]
    assert not any("so no entities were imported" in note for note in done.notes)


def test_nodes_that_pass_for_hgmems_altogether_are_refused_in_a_corpus_that_there_is_not_yet(
    client: HGMem, theirs: Driver, graph: Graph
) -> None:
    made = "CREATE (:Document {corpus: $c, uid: 'theirs-d'}), (:Chunk {corpus: $c, uid: 'theirs-c'})"
    theirs.execute_query(made, c=client.corpus)
    try:
        with pytest.raises(
            UsageError, match=r"2 nodes that hgmem did not write have the property corpus: .* with another name"
        ):
            client.adopt()
    finally:
        theirs.execute_query("MATCH (n) WHERE n.uid IN ['theirs-d', 'theirs-c'] DETACH DELETE n")


def test_nodes_that_would_pass_for_hgmems_are_refused(client: HGMem, theirs: Driver, graph: Graph) -> None:
    theirs.execute_query("MATCH (c:Chunk {index: 0}) SET c.corpus = $corpus", corpus=client.corpus)
    with pytest.raises(
        UsageError, match=r"6 nodes that hgmem did not write have the property corpus: .* with another name"
    ):
        client.adopt()
    theirs.execute_query("MATCH (c:Chunk {index: 0}) SET c.corpus = 'legal'")
    assert client.adopt().chunks == len(of(graph, "Chunk"))


def vectors(dimensions: int) -> str:
    options = f"{{`vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine'}}"
    return f"VECTOR INDEX theirs FOR (c:Chunk) ON c.embedding OPTIONS {{indexConfig: {options}}}"


@pytest.mark.parametrize(
    ("index", "crowded"),
    [
        (vectors(DeterministicEmbedder().dimensions), True),
        (vectors(8), False),
        ("FULLTEXT INDEX theirs FOR (c:Chunk) ON EACH [c.text]", True),
        ("FULLTEXT INDEX theirs FOR (c:__Entity__) ON EACH [c.name]", False),
    ],
)
def test_their_indexes_live_beside_and_are_named_if_they_take_in_the_copies(
    client: HGMem, theirs: Driver, graph: Graph, index: str, *, crowded: bool
) -> None:
    theirs.execute_query(f"CYPHER 25 CREATE {index}")
    try:
        theirs.execute_query("CALL db.awaitIndexes(60)")
        notes = client.adopt().notes
        answer = client.ask("Who commands the Corrie Vane?", steps=1)
    finally:
        theirs.execute_query("DROP INDEX theirs")
    assert any(note.startswith("index 'theirs' also covers hgmem's nodes (:Chunk)") for note in notes) == crowded
    assert answer.citations


def test_vectors_of_theirs_that_are_as_ours_are_not_retrieved(
    client: HGMem, settings: Settings, theirs: Driver, graph: Graph
) -> None:
    texts = [each["text"] for each in of(graph, "Chunk")]
    vectors = client.embedder.embed(texts, kind="document")
    rows = [{"text": one, "vector": vector.tolist()} for one, vector in zip(texts, vectors, strict=True)]
    theirs.execute_query("UNWIND $rows AS row MATCH (c:Chunk {text: row.text}) SET c.embedding = row.vector", rows=rows)
    client.adopt()
    answer = client.ask("Who brought the crate of the Ravensund Orrery to Quillane Wharf?", steps=1)
    ours = set(dump(settings, client.corpus).of("Chunk"))
    assert answer.citations
    assert {citation.chunk for citation in answer.citations} <= ours
    assert client.check().findings == ()


# Pages ------------------------------------------------------------------------------------------------------------


def test_a_graph_is_the_same_however_it_is_cut_into_pages(
    client: HGMem, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = assembled(importing.foreign_graph(client._database, Shape()), Shape())
    monkeypatch.setattr(importing, "IDS", 7)
    monkeypatch.setattr(importing, "PAGE", 3)
    monkeypatch.setattr(importing, "RELATIONS", 2)
    assert assembled(importing.foreign_graph(client._database, Shape()), Shape()) == whole


LARGE = """
UNWIND range(0, $documents - 1) AS number
CREATE (d:Document:__KGBuilder__ {path: 'large/' + number})
WITH d, number UNWIND range(0, $chunks - 1) AS at
CREATE (c:Chunk:__KGBuilder__ {text: 'Paper ' + number + ' piece ' + at + ' of Name ' + (at % 50) + '.', index: at})
CREATE (c)-[:FROM_DOCUMENT]->(d)
MERGE (e:__Entity__:__KGBuilder__ {name: 'Name ' + (at % 50)})
MERGE (hub:__Entity__:__KGBuilder__ {name: 'Hub'})
CREATE (e)-[:FROM_CHUNK]->(c), (hub)-[:FROM_CHUNK]->(c), (hub)-[:NAMES {at: at, number: number}]->(e)
"""


def test_thousands_of_chunks_come_in_bounded_pages(
    client: HGMem, theirs: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs.execute_query("CREATE INDEX large IF NOT EXISTS FOR (e:__Entity__) ON e.name")
    theirs.execute_query(LARGE, documents=20, chunks=100)
    theirs.execute_query("DROP INDEX large")
    rows: list[int] = []
    run = Database.run

    def counted(database: Database, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
        found = run(database, name, **parameters)
        if name.startswith("foreign_") and name != "foreign_nodes":
            rows.append(len(found))
        return found

    monkeypatch.setattr(Database, "run", counted)
    monkeypatch.setattr(importing, "RELATIONS", 400)
    done = client.adopt()
    assert (done.documents, done.chunks, done.entities, done.relations) == (20, 2_000, 51, 50)
    assert max(rows) <= importing.PAGE
    assert sum(rows) >= 2_000 + 2_000
    assert client.check().findings == ()


# The command ------------------------------------------------------------------------------------------------------


def test_the_command_adopts_once_and_says_what_it_left_out(
    environment: dict[str, str], client: HGMem, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def hgmem(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments], env=environment)

    first = hgmem(*ADOPT, "-c", client.corpus, "--json")
    assert first.exit_code == 0, first.output
    done = json.loads(first.stdout)
    assert (done["written"], done["chunks"]) == (True, len(of(graph, "Chunk")))
    assert "entities were merged with others of the same name" in first.stderr
    again = hgmem(*ADOPT, "-c", client.corpus)
    assert again.exit_code == 0
    assert "already imported, nothing was written" in again.stdout
    elsewhere = ["--from-uri", environment["NEO4J_URI"], "--from-database", "neo4j"]
    refused = hgmem(*ADOPT, "-c", client.corpus, *elsewhere)
    assert "check --from-username and HGMEM_FROM_PASSWORD" in refused.stderr
    environment["HGMEM_FROM_PASSWORD"] = environment["NEO4J_PASSWORD"]
    assert "already imported, nothing was written" in hgmem(*ADOPT, "-c", client.corpus, *elsewhere).stdout
    absent = hgmem(*ADOPT, "-c", f"{client.corpus}-x", "--chunk-label", "Passage")
    assert absent.exit_code == 1
    assert "error: nothing to import:" in absent.stderr
    assert "name the chunk label with --chunk-label" in absent.stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--chunk-label", "invalid chunk_label=''"),
        ("--name-property", "invalid name_property=''"),
        ("--from-database", "--from-database is empty: pass a value, or omit it"),
        ("--from-uri", "--from-uri is empty: pass a value, or omit it"),
    ],
)
def test_an_option_that_is_empty_does_not_mean_the_default(
    environment: dict[str, str], client: HGMem, graph: Graph, option: str, said: str
) -> None:
    done = CliRunner().invoke(app, [*ADOPT, "-c", client.corpus, option, ""], env=environment)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error: {said}" in done.stderr
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


DOCS = Path(__file__).parents[2] / "docs" / "graphrag.md"
has_docs = pytest.mark.skipif(not DOCS.is_file(), reason="the documents are not in the wheel")


def documented(mark: str, language: str) -> str:
    """Return the block of docs/graphrag.md after the mark."""
    text = DOCS.read_text(encoding="utf-8")
    (found,) = re.findall(rf"<!-- {mark} -->\n```{language}\n(.*?)```", text, re.DOTALL)
    return str(found)


@has_docs
@pytest.mark.parametrize("mark", ["run by tests", "run by tests, on a graph of such names"])
@pytest.mark.slow
def test_the_documented_commands_run(
    mark: str, environment: dict[str, str], open_client: Callable[..., HGMem], theirs: Driver
) -> None:
    new = {"Document": "File", "Chunk": "Passage", "text": "body", "name": "title"} if "," in mark else {}
    put(theirs, stored(), renamed=new)
    open_client(corpus="affair")  # deletes the corpus at the end
    for line in documented(mark, "bash").splitlines():
        done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:], env=environment)
        assert done.exit_code == 0, done.output


@has_docs
def test_the_documented_example_and_query_run(
    environment: dict[str, str],
    open_client: Callable[..., HGMem],
    theirs: Driver,
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    open_client(corpus="affair")
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL"):
        monkeypatch.setenv(name, environment[name])
    exec(compile(documented("run by tests", "python"), "graphrag.md", "exec"), {})
    assert capsys.readouterr().out.startswith(f"{len(of(graph, 'Chunk'))}\n")
    assert len(theirs.execute_query(documented("run by tests", "cypher"), corpus="affair")[0]) == 10


# The package itself -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the newest `neo4j-graphrag`, in its own environment."""
    home = tmp_path_factory.mktemp("graphrag") / "venv"
    python = home / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "neo4j-graphrag"], check=True)
    return python


def written(package: Path, server: Server, affair: Path, **more: Any) -> str:
    """Let the package write its graph; return the package's version."""
    told = {
        "uri": server.uri,
        "username": server.username,
        "password": server.password.get_secret_value(),
        "texts": {f"papers/{name}.txt": (affair / f"{name}.txt").read_text(encoding="utf-8") for name in PAPERS},
        "known": KNOWN,
        "bare": [BARE],
        **more,
    }
    done = subprocess.run([package, str(WRITER)], input=json.dumps(told), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def timeless(graph: Graph) -> list[Any]:
    """Return a recording without values that differ between runs: version, times, and thus node numbers."""
    nodes = [
        json.dumps([labels, {**properties, "createdAt": "" if "createdAt" in properties else None}], sort_keys=True)
        for labels, properties in graph["nodes"]
    ]
    links = [[nodes[source], kind, nodes[target], said] for source, kind, target, said in graph["relationships"]]
    return [sorted(nodes), sorted(links, key=str)]


@pytest.mark.long
def test_the_recording_is_what_the_package_writes(
    package: Path, server: Server, theirs: Driver, affair: Path, request: pytest.FixtureRequest
) -> None:
    found = record(theirs, written(package, server, affair))
    if request.config.getoption("--rewrite-golden"):
        lines = json.dumps(found, ensure_ascii=False).replace('], ["', '],\n["').replace("], [[", "],\n[[")
        GOLDEN.write_text(lines + "\n", encoding="utf-8")
    assert timeless(found) == timeless(stored())


@pytest.mark.long
def test_a_graph_of_other_labels_that_the_package_wrote_is_adopted(
    package: Path, client: HGMem, server: Server, theirs: Driver, affair: Path
) -> None:
    config = {"document_node_label": "File", "chunk_node_label": "Passage", "chunk_text_property": "body"}
    written(package, server, affair, config=config, bare=[])
    done = client.adopt(config=SimpleNamespace(**config))
    assert done.chunks == len(of(stored(), "Chunk")) - 2
    assert client.check().findings == ()
