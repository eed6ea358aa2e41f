"""Conversion of graphs of Neo4j's GraphRAG package from rows, valid and invalid ones."""

from collections import Counter
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from hgmem.corpus.adding import prepare
from hgmem.errors import UsageError
from hgmem.sources.graphrag import assembled, scalar, text, words
from hgmem.values.foreign_graph import Element, ForeignGraph, Shape, configured
from hgmem.values.inputs import Given


def put(**found: Any) -> tuple[Given, tuple[str, ...]]:
    given, notes = assembled(ForeignGraph(**found), Shape())
    prepare(given, corpus="c")  # the result can be imported
    return given, notes


def document(id_: str, **properties: Any) -> Element:
    return {"id": id_, "properties": properties}


def chunk(id_: str, position: Any = None, *, to: str = "", home: str = "", words: Any = None) -> Element:
    said = f"Text {id_}." if words is None else words
    linked = {"documents": home.split(), "following": to.split()}
    return {"id": id_, "text": said, "position": position, "own": None, **linked}


def entity(id_: str, name: Any, *labels: str, chunks: str = "", **properties: Any) -> Element:
    said = {"name": name, **properties} if name is not None else properties
    labelled = ["__KGBuilder__", "__Entity__", *labels]
    return {"id": id_, "labels": labelled, "properties": said, "chunks": chunks.split()}


def relation(source: str, target: str, kind: str = "KNOWS", **properties: Any) -> Element:
    ends = {"source": source, "target": target}
    return {"id": f"{source}-{target}", "type": kind, **ends, "properties": properties}


def order(*chunks: Element) -> list[str]:
    return [one.id for one in put(documents=[document("d")], chunks=list(chunks))[0].chunks]


# Documents and chunks ---------------------------------------------------------------------------------------------


def test_a_document_keeps_path_title_and_properties() -> None:
    theirs = document(
        "e1",
        path="letters/a.txt",
        createdAt="2026-01-01",
        year=1922,
        seen=date(1922, 10, 12),
        tags=["x", "y"],
        __tmp="z",
    )
    (one,) = put(documents=[theirs])[0].documents
    assert (one.id, one.source, one.title, one.text) == ("letters/a.txt", "letters/a.txt", "a.txt", "")
    assert one.metadata == {"createdAt": "2026-01-01", "year": 1922, "seen": "1922-10-12", "tags": "x, y"}


def test_documents_of_one_path_are_told_apart() -> None:
    given, _ = put(documents=[document("e1", path="document.txt"), document("e2", path="document.txt"), document("e3")])
    assert [one.id for one in given.documents] == ["e1", "e2", "e3"]
    assert [one.title for one in given.documents] == ["document.txt", "document.txt", "e3"]


@pytest.mark.parametrize(
    ("chunks", "wanted"),
    [
        ((chunk("a", 2, home="d"), chunk("b", 0, home="d"), chunk("c", 1, home="d")), "b c a"),
        ((chunk("a", 10, home="d"), chunk("b", 9, home="d")), "b a"),
        ((chunk("c:10", home="d"), chunk("c:9", home="d"), chunk("c:11", 5, home="d")), "c:11 c:9 c:10"),
        ((chunk("a", to="c", home="d"), chunk("b", home="d"), chunk("c", to="b", home="d")), "a c b"),
        ((chunk("a", 0, to="c", home="d"), chunk("b", 0, home="d"), chunk("c", 0, to="b", home="d")), "a c b"),
        ((chunk("a", "2", home="d"), chunk("b", True, home="d"), chunk("c", 1, home="d")), "c a b"),
        ((chunk("a", to="b", home="d"), chunk("b", to="c", home="d"), chunk("c", to="a", home="d")), "a b c"),
        ((chunk("a", to="a b c", home="d"), chunk("b", home="d"), chunk("c", home="d")), "a b c"),
        ((chunk("a", float("nan"), home="d"), chunk("b", 1.5, home="d"), chunk("c", 1, home="d")), "c b a"),
    ],
)
def test_chunks_are_in_the_order_of_their_numbers_or_else_of_their_chain(
    chunks: tuple[Element, ...], wanted: str
) -> None:
    assert " ".join(order(*chunks)) == wanted


def test_chunks_without_text_are_left_out_and_counted() -> None:
    odd = [chunk("a", words=""), chunk("b", words=" \n"), chunk("c", words=7), chunk("d"), chunk("e", words=["x"])]
    given, notes = put(chunks=odd, entities=[entity("1", "Ada", chunks="a d gone")])
    assert [one.id for one in given.chunks] == ["d"]
    assert given.entities[0].chunks == ("d",)
    assert "4 chunks without text were skipped" in notes


def test_chunks_without_a_document_get_one_for_each_chain() -> None:
    given, notes = put(chunks=[chunk("a", 1), chunk("b", 0, to="a"), chunk("c", 0), chunk("d", to="gone")])
    assert [(one.id, one.title) for one in given.documents] == [
        ("chunks-b", "Text b."),
        ("chunks-c", "Text c."),
        ("chunks-d", "Text d."),
    ]
    assert [(one.id, one.document) for one in given.chunks] == [
        ("b", "chunks-b"),
        ("a", "chunks-b"),
        ("c", "chunks-c"),
        ("d", "chunks-d"),
    ]
    assert "3 documents were created for chunks without one" in notes


def test_a_chunk_of_several_documents_goes_into_the_first() -> None:
    given, notes = put(documents=[document("d"), document("e")], chunks=[chunk("a", home="d e"), chunk("b", home="e")])
    assert [(one.id, one.document) for one in given.chunks] == [("a", "d"), ("b", "e")]
    assert notes == ("1 chunk of several documents was assigned to the first",)


def test_what_chunks_call_themselves_is_kept_where_nothing_else_is_called_so() -> None:
    chunks = [{**chunk(id_), "own": own} for id_, own in {"a": "x", "b": ":0", "c": ":0", "d": 7}.items()]
    assert [one.id for one in put(chunks=chunks)[0].chunks] == ["x", "b", "c", "d"]


def test_no_database_takes_nulls_and_they_go() -> None:
    given, _ = put(
        documents=[document("d", path="a\0.txt", note="x\0y")],
        chunks=[chunk("a", home="d", words="one\0two")],
        entities=[entity("1", "A\0da", trade="car\0ter")],
    )
    assert "\0" not in repr(given).replace("\\x00", "\0")


# Entities and relations -------------------------------------------------------------------------------------------


def test_an_entity_keeps_labels_and_properties() -> None:
    theirs = entity(
        "1",
        " Josse  Arkwell",
        "Person",
        "Carter",
        description="A carter.",
        birthDate=date(1880, 1, 2),
        left_in="no",
        id="c:0",
    )
    (one,) = put(entities=[theirs])[0].entities
    assert (one.name, one.type) == ("Josse Arkwell", "Carter, Person")
    assert one.description == "A carter.\nbirth date: 1880-01-02\nleft in: no"


def test_entities_without_a_name_are_left_out_with_their_relations() -> None:
    nameless = [entity("1", None), entity("2", ""), entity("3", ["Ada"]), entity("4", True), entity("5", "\u200b \n")]
    found = [*nameless[:4], entity("6", 1922), entity("7", "Ada")]
    given, notes = put(entities=found, relations=[relation("1", "7"), relation("7", "6"), relation("7", "gone")])
    assert [one.name for one in given.entities] == ["1922", "Ada"]
    assert [(one.source, one.target) for one in given.relations] == [("Ada", "1922")]
    assert notes == (
        "4 entities without a name in 'name' were skipped",
        "2 relations of skipped entities were skipped",
    )


def test_entities_of_one_name_are_one() -> None:
    found = [entity("1", "Apple", "Company", chunks="a"), entity("2", "APPLE", "Fruit", chunks="b"), entity("3", "Bo")]
    given, notes = put(chunks=[chunk("a"), chunk("b")], entities=found, relations=[relation("1", "2")])
    assert set(prepare(given, corpus="c").entities) == {"apple", "bo"}
    assert given.relations == ()
    assert "1 entity was merged with another of the same name" in notes
    assert "1 relation of an entity with itself was skipped" in notes


def test_a_relation_says_its_direction_and_rests_on_the_chunks_of_both_ends() -> None:
    given, _ = put(
        chunks=[chunk("a"), chunk("b"), chunk("c")],
        entities=[entity("1", "Ada", chunks="a b"), entity("2", "Bo", chunks="b c"), entity("3", "Cy")],
        relations=[
            relation("2", "1", "WORKS_FOR", since=1922, role="clerk"),
            relation("1", "3", "knows", description="They met."),
        ],
    )
    knows, works = given.relations  # in the order of their ids
    assert (works.source, works.target, works.keywords) == ("Bo", "Ada", ("works for",))
    assert works.description == "Bo works for Ada (role: clerk; since: 1922)"
    assert (works.chunks, works.weight) == (("b",), 1.0)
    assert (knows.description, knows.chunks) == ("Ada knows Cy: They met.", ())


@pytest.mark.parametrize(
    ("value", "line", "kept"),
    [
        ("a\n b", "a b", "a\n b"),
        (True, "true", True),
        (7, "7", 7),
        (1.5, "1.5", 1.5),
        (float("inf"), "inf", "inf"),
        ([1, "x", ["y"]], "1, x, y", "1, x, y"),
        (b"\x00", "", ""),
        (date(1922, 10, 12), "1922-10-12", "1922-10-12"),
    ],
)
def test_values_of_any_kind_are_read(value: object, line: str, kept: object) -> None:
    assert text(value) == line
    assert scalar(value) == kept


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("WORKS_FOR", "works for"), ("worksFor", "works for"), ("KNOWS", "knows"), ("knows", "knows"), ("URL", "url")],
)
def test_names_are_read_as_words(name: str, wanted: str) -> None:
    assert words(name) == wanted


IDS = st.sampled_from("abcdef")
ANYTHING = st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.text(), max_size=2))


@examples(st.data())
def test_no_graph_is_too_tangled_to_be_read(data: st.DataObject) -> None:
    links = st.lists(IDS, max_size=3, unique=True).map(tuple)
    found = ForeignGraph(
        documents=[document(id_, path=data.draw(ANYTHING)) for id_ in data.draw(st.sets(IDS))],
        chunks=[
            {
                "id": f"c{id_}",
                "text": data.draw(ANYTHING),
                "position": data.draw(ANYTHING),
                "own": data.draw(ANYTHING),
                "documents": data.draw(links),
                "following": [f"c{other}" for other in data.draw(links)],
            }
            for id_ in sorted(data.draw(st.sets(IDS)))
        ],
        entities=[
            {
                "id": id_,
                "labels": [data.draw(st.text())],
                "properties": {"name": data.draw(ANYTHING)},
                "chunks": ["ca"],
            }
            for id_ in data.draw(st.sets(IDS))
        ],
        relations=[relation(data.draw(IDS), data.draw(IDS), data.draw(st.text(min_size=1))) for _ in range(3)],
    )
    given, _ = assembled(found, Shape())
    usable = [one for one in found.chunks if isinstance(one["text"], str) and one["text"].replace("\0", "").strip()]
    assert len(given.chunks) == len(usable)
    assert assembled(found, Shape()) == assembled(found, Shape())
    assert Counter(one.document for one in given.chunks).keys() <= {one.id for one in given.documents}


# Shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"chunk_label": ""}, "invalid chunk_label=''"),
        ({"name_property": "a\0b"}, "invalid name_property='a\\\\x00b'"),
        ({"next_relationship": 7}, "invalid next_relationship=7"),
        ({"chunk_label": "Document"}, "need three different labels, not 'Document', 'Document', '__Entity__'"),
        ({"config": object()}, "'object' is not a LexicalGraphConfig"),
    ],
)
def test_what_can_be_no_label_is_refused(named: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configured(named.pop("config", None), **named)


def test_a_config_of_theirs_is_understood_in_any_version() -> None:
    old = SimpleNamespace(chunk_node_label="Passage", document_node_label="File", chunk_text_property="body")
    assert configured(old, name_property="title") == Shape(
        chunk_label="Passage", document_label="File", text_property="body", name_property="title"
    )
