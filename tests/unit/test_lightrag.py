import json
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.errors import DocumentError
from hgmem.sources.lightrag import CHUNKS, DOCUMENTS, GRAPH, read_lightrag
from hgmem.text.identity import key
from hgmem.values.inputs import Document, GivenChunk, GivenEntity, GivenRelation

NOVEL = Path(__file__).parents[2].parent / "shared" / "data" / "gods_of_mars"
TEXT = "\ufeffThe ferry Aurora left Port Ellis. Captain Rhee kept the log. The log was lost."
KEYS = {
    "d0": ("node", "entity_type"),
    "d1": ("node", "description"),
    "d2": ("node", "source_id"),
    "d3": ("edge", "weight"),
    "d4": ("edge", "description"),
    "d5": ("edge", "keywords"),
    "d6": ("edge", "source_id"),
    "d7": ("node", "file_path"),
}
NODES = {
    "AURORA": {"entity_type": '"SHIP"', "description": "A ferry.<SEP>It sails.<SEP>A ferry.", "source_id": "c1<SEP>c2"},
    "CAPTAIN RHEE": {"entity_type": "PERSON", "description": "Keeps the log.", "source_id": "c2"},
}
EDGE = {
    "weight": "6.0",
    "description": "Commands.",
    "keywords": "duty, sea<SEP>sea,log",
    "source_id": "c2<SEP>c1<SEP>c2",
}
EDGES = [("AURORA", "CAPTAIN RHEE", EDGE)]
RECORDS = {
    "c2": {"content": "Captain Rhee kept the log.", "full_doc_id": "doc", "chunk_order_index": 1, "tokens": 6},
    "c1": {"content": "\ufeffThe ferry Aurora left Port Ellis.", "full_doc_id": "doc", "chunk_order_index": 0},
}


def field(scope, name, value):
    id_ = next(id_ for id_, found in KEYS.items() if found == (scope, name))
    return f'<data key="{id_}">{escape(value)}</data>'


def graphml(nodes, edges):
    keys = [f'<key id="{id_}" for="{scope}" attr.name="{name}" />' for id_, (scope, name) in KEYS.items()]
    body = [
        f"<node id={quoteattr(id_)}>{''.join(field('node', *pair) for pair in data.items())}</node>"
        for id_, data in nodes.items()
    ]
    body += [
        f"<edge source={quoteattr(source)} target={quoteattr(target)}>"
        f"{''.join(field('edge', *pair) for pair in data.items())}</edge>"
        for source, target, data in edges
    ]
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    return "\n".join([head, *keys, '<graph edgedefault="undirected">', *body, "</graph></graphml>"])


def directory(folder, *, nodes=NODES, edges=EDGES, chunks=RECORDS, documents=None):
    folder.mkdir(exist_ok=True)
    documents = {"doc": {"content": TEXT}} if documents is None else documents
    (folder / GRAPH).write_text(graphml(nodes, edges), "utf-8")
    (folder / CHUNKS).write_text(json.dumps(chunks), "utf-8")
    (folder / DOCUMENTS).write_text(json.dumps(documents), "utf-8")
    return folder


def error(folder):
    with pytest.raises(DocumentError) as caught:
        read_lightrag(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(records, id_, **fields):
    record = {name: value for name, value in (records[id_] | fields).items() if value is not ...}
    return records | {id_: record}


def test_a_directory_is_read_as_it_stands(tmp_path):
    given = read_lightrag(directory(tmp_path))
    text = TEXT.removeprefix("\ufeff")
    assert given.documents == (Document(id="doc", text=text, title=text),)
    assert given.chunks == (
        GivenChunk(id="c1", document="doc", text="The ferry Aurora left Port Ellis.", start=0),
        GivenChunk(id="c2", document="doc", text="Captain Rhee kept the log.", start=34),
    )
    assert given.entities == (
        GivenEntity(name="AURORA", type="SHIP", description="A ferry.\nIt sails.", chunks=("c1", "c2")),
        GivenEntity(name="CAPTAIN RHEE", type="PERSON", description="Keeps the log.", chunks=("c2",)),
    )
    assert given.relations == (
        GivenRelation(
            source="AURORA",
            target="CAPTAIN RHEE",
            description="Commands.",
            keywords=("duty", "sea", "log"),
            weight=6.0,
            chunks=("c2", "c1"),
        ),
    )


def test_the_fields_of_newer_versions_do_no_harm(tmp_path):
    extra = {"create_time": 1, "update_time": 2, "file_path": "logs/aurora.txt", "llm_cache_list": ["x"], "_id": "y"}
    chunks = {id_: record | extra for id_, record in RECORDS.items()}
    nodes = {id_: data | {"file_path": "aurora.txt"} for id_, data in NODES.items()}
    given = read_lightrag(directory(tmp_path, nodes=nodes, chunks=chunks, documents={"doc": {"content": TEXT} | extra}))
    assert (given.documents[0].title, given.documents[0].source) == ("aurora.txt", "logs/aurora.txt")
    assert (len(given.chunks), len(given.entities), len(given.relations)) == (2, 2, 1)


@pytest.mark.parametrize("file", ["unknown_source", None, ""])
def test_without_a_file_the_title_is_the_first_line_that_says_something(tmp_path, file):
    documents = {"doc": {"content": f"\n \n  The log {'x' * 200}\nmore", "file_path": file}}
    (document,) = read_lightrag(directory(tmp_path, documents=documents)).documents
    assert document.title.startswith("The log x")
    assert (len(document.title), document.source) == (120, "")


def test_a_text_that_comes_again_is_found_after_the_chunk_before_it(tmp_path):
    text = "Ring. Wait. Ring. Wait. Done."
    contents = ["Ring. Wait.", "Wait. Ring.", "Ring. Wait. Done.", "not in it", "Done."]
    chunks = {
        f"c{n}": {"content": content, "full_doc_id": "doc", "chunk_order_index": n}
        for n, content in enumerate(contents)
    }
    folder = directory(tmp_path, nodes={}, edges=[], chunks=chunks, documents={"doc": {"content": text}})
    assert [chunk.start for chunk in read_lightrag(folder).chunks] == [0, 6, 12, None, 24]


def test_chunks_come_by_document_and_number_whatever_their_order_in_the_file(tmp_path):
    chunks = {
        "z": {"content": "b", "full_doc_id": "two", "chunk_order_index": 0},
        "y": {"content": "last", "full_doc_id": "one"},
        "x": {"content": "a", "full_doc_id": "one", "chunk_order_index": 0},
    }
    documents = {"one": {"content": "a last"}, "two": {"content": "b"}}
    given = read_lightrag(directory(tmp_path, nodes={}, edges=[], chunks=chunks, documents=documents))
    assert [chunk.id for chunk in given.chunks] == ["x", "y", "z"]


def test_quotes_around_names_go_unless_the_name_is_another_nodes(tmp_path):
    names = ['"AURORA"', '"PORT ELLIS"', "PORT ELLIS", '"SO" AND "SO"']
    edges = [('"AURORA"', '"PORT ELLIS"', {}), ('"AURORA"', "PORT ELLIS", {})]
    given = read_lightrag(directory(tmp_path, nodes={name: {} for name in names}, edges=edges))
    assert [entity.name for entity in given.entities] == ["AURORA", '"PORT ELLIS"', "PORT ELLIS", '"SO" AND "SO"']
    assert [relation.target for relation in given.relations] == ['"PORT ELLIS"', "PORT ELLIS"]
    assert {relation.source for relation in given.relations} == {"AURORA"}


def test_names_of_one_key_self_loops_and_doubled_edges_are_all_kept(tmp_path):
    edges = [("Aurora", "Aurora", {}), ("Aurora", "AURORA", {}), ("AURORA", "Aurora", {})]
    given = read_lightrag(directory(tmp_path, nodes={"Aurora": {}, "AURORA": {}}, edges=edges))
    assert [entity.name for entity in given.entities] == ["Aurora", "AURORA"]
    assert [(relation.source, relation.target) for relation in given.relations] == [edge[:2] for edge in edges]
    assert {relation.weight for relation in given.relations} == {1.0}


@pytest.mark.parametrize("source", ["", "UNKNOWN", "manual_creation"])
def test_an_entity_may_come_from_no_chunk(tmp_path, source):
    given = read_lightrag(directory(tmp_path, nodes=NODES | {"AURORA": {"source_id": source}}))
    assert given.entities[0].chunks == ()


@pytest.mark.parametrize("name", [GRAPH, CHUNKS, DOCUMENTS])
def test_a_missing_file_is_named(tmp_path, name):
    directory(tmp_path)
    (tmp_path / name).unlink()
    assert f"{name} is missing" in error(tmp_path)


@pytest.mark.parametrize("name", [GRAPH, CHUNKS, DOCUMENTS])
def test_a_file_cut_short_anywhere_is_an_error_that_names_file_and_line(tmp_path, name):
    whole = (directory(tmp_path) / name).read_bytes()
    for length in range(0, len(whole), 17):
        (tmp_path / name).write_bytes(whole[:length])
        message = error(tmp_path)
        assert name in message
        assert "line " in message


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"chunks": changed(RECORDS, "c1", content=...)}, (CHUNKS, "'c1'", "'content'")),
        ({"chunks": changed(RECORDS, "c1", full_doc_id=...)}, (CHUNKS, "'c1'", "'full_doc_id'")),
        ({"chunks": changed(RECORDS, "c1", full_doc_id="other")}, (CHUNKS, "'c1'", "'other'", DOCUMENTS)),
        ({"chunks": changed(RECORDS, "c1", chunk_order_index="1")}, (CHUNKS, "'c1'", "chunk_order_index")),
        ({"chunks": changed(RECORDS, "c1", content="\ud83d")}, (CHUNKS, "'c1'", "surrogate")),
        ({"chunks": RECORDS | {"c3": "text"}}, (CHUNKS, "'c3'", "not an object")),
        ({"chunks": [RECORDS["c1"]]}, (CHUNKS, "not a JSON object of records")),
        ({"documents": {"doc": {"text": TEXT}}}, (DOCUMENTS, "'doc'", "'content'")),
        ({"documents": {"doc": {"content": 3}}}, (DOCUMENTS, "'doc'", "'content'")),
        ({"nodes": changed(NODES, "AURORA", source_id="c1<SEP>c9")}, (GRAPH, "line 11", "'c9'", CHUNKS)),
        ({"edges": [("AURORA", "CAPTAIN RHEE", {"source_id": "c9"})]}, (GRAPH, "line 13", "'c9'", CHUNKS)),
        ({"edges": [*EDGES, ("AURORA", "NOBODY", {})]}, (GRAPH, "line 14", "target 'NOBODY'")),
        ({"edges": [("NOBODY", "AURORA", {})]}, (GRAPH, "line 13", "source 'NOBODY'")),
        ({"edges": [("AURORA", "CAPTAIN RHEE", {"weight": "heavy"})]}, (GRAPH, "line 13", "'heavy'")),
        ({"edges": [("AURORA", "CAPTAIN RHEE", {"weight": "nan"})]}, (GRAPH, "line 13", "'nan'")),
    ],
)
def test_what_does_not_fit_together_is_an_error_that_names_the_place(tmp_path, change, places):
    message = error(directory(tmp_path, **change))
    assert all(place in message for place in places), message


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><graphml>&b;</graphml>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><graphml>&a;</graphml>'


@pytest.mark.parametrize(
    ("graph", "place"),
    [
        (BOMB, "document type"),
        (OUTSIDE, "document type"),
        ('<!DOCTYPE graphml SYSTEM "http://localhost/x.dtd"><graphml/>', "document type"),
        ("<graphml>\n<graph></node></graphml>", "line 2, column 10"),
        ("<graphml>&nbsp;</graphml>", "undefined entity"),
        ('<graphml><node id="A"><data key="d0">x</data></node></graphml>', "line 1"),
        ("<graphml>\n<node/></graphml>", "line 2: the attribute 'id' is missing"),
        ('<graphml><node id="A"/>\n<node id="A"/></graphml>', "duplicate node 'A'"),
        ('<graphml><node id="A"/>\n<edge source="A"/></graphml>', "line 2: the attribute 'target' is missing"),
        ("<html/>", "not GraphML"),
        ("not xml", "line 1"),
        ('<?xml version="1.0" encoding="nonsense"?><graphml/>', "encoding"),
    ],
)
def test_a_graph_that_is_broken_or_hostile_is_refused_with_its_place(tmp_path, graph, place):
    (directory(tmp_path) / GRAPH).write_text(graph, "utf-8")
    message = error(tmp_path)
    assert GRAPH in message
    assert place in message


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"\xe9": 1}', b"1" + b"0" * 5_000])
def test_json_that_is_hostile_is_refused_with_its_file(tmp_path, content):
    (directory(tmp_path) / CHUNKS).write_bytes(content)
    assert CHUNKS in error(tmp_path)


def test_data_of_the_graph_itself_belongs_to_no_node(tmp_path):
    path = directory(tmp_path) / GRAPH
    path.write_text(path.read_text("utf-8").replace("</graph>", '<data key="d0">ALL</data></graph>'), "utf-8")
    assert [entity.type for entity in read_lightrag(tmp_path).entities] == ["SHIP", "PERSON"]


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(st.dictionaries(words.filter(str.strip), words, max_size=6))
def test_no_name_is_lost_or_confused_with_another(tmp_path_factory, given_nodes):
    nodes = {name: {"description": text} for name, text in given_nodes.items() if name == " ".join(name.split())}
    folder = directory(tmp_path_factory.mktemp("graphs"), nodes=nodes, edges=[])
    entities = read_lightrag(folder).entities
    assert len(entities) == len(nodes)
    assert len({key(entity.name) for entity in entities}) >= len({key(name.replace('"', "")) for name in nodes})


def test_the_novel_comes_whole():
    if not NOVEL.exists():
        pytest.skip(f"{NOVEL} is not here")
    given = read_lightrag(NOVEL)
    counts = (len(given.entities), len(given.relations), len(given.chunks), len(given.documents))
    assert counts == (1_279, 1_791, 754, 1)
    assert sum(len(entity.chunks) for entity in given.entities) == 3_799
    assert len({key(entity.name) for entity in given.entities}) == 1_279
    assert not any('"' in entity.type for entity in given.entities)
    (document,) = given.documents
    starts = [chunk.start for chunk in given.chunks]
    assert starts == sorted(starts)
    assert all(document.text.startswith(chunk.text, chunk.start) for chunk in given.chunks)
