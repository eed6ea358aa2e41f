"""Property tests: any content of a LightRAG directory gives a consistent graph or a one-line error.

`pytest --hypothesis-profile=thorough` tries 5,000 directories of each kind.
"""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutating import spoilt

from hgmem.corpus.adding import prepare
from hgmem.errors import DocumentError, UsageError
from hgmem.sources.lightrag import CHUNKS, DOCUMENTS, GRAPH, read_lightrag
from hgmem.values.inputs import Given

KEYS = [
    ("node", "entity_type"),
    ("node", "description"),
    ("node", "source_id"),
    ("edge", "weight"),
    ("edge", "keywords"),
]
GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    + "".join(f'<key id="d{n}" for="{scope}" attr.name="{name}"/>' for n, (scope, name) in enumerate(KEYS))
    + '<graph edgedefault="undirected"><node id="&quot;AURORA&quot;"><data key="d0">SHIP</data><data key="d1">A ferry.'
    '&lt;SEP&gt;It sails.</data><data key="d2">c1&lt;SEP&gt;c2</data></node><node id="RHEE">'
    '<data key="d2">c2</data></node>'
    '<edge source="&quot;AURORA&quot;" target="RHEE"><data key="d3">6.0</data><data key="d4">duty,sea</data></edge>'
    "</graph></graphml>"
)
TEXT = "The ferry Aurora left. Captain Rhee kept the log."
STORED = {
    "c1": {"content": "The ferry Aurora left.", "full_doc_id": "doc", "chunk_order_index": 0},
    "c2": {"content": "Captain Rhee kept the log.", "full_doc_id": "doc", "chunk_order_index": 1, "tokens": 6},
}
HELD = {"doc": {"content": TEXT, "file_path": "logs/aurora.txt"}}
SEEDS = {GRAPH: GRAPHML.encode(), CHUNKS: json.dumps(STORED).encode(), DOCUMENTS: json.dumps(HELD).encode()}


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Reads a directory with these files instead of the valid ones."""
    folder = tmp_path_factory.mktemp("rag")

    def reading(**spoilt_files):
        for name, content in (SEEDS | spoilt_files).items():
            (folder / name).write_bytes(content)
        return outcome(folder)

    return reading


def outcome(folder):
    try:
        found = read_lightrag(folder)
        texts(found)
        prepare(found, corpus="c")
    except (DocumentError, UsageError) as error:
        one_line(str(error))
        return None
    return found


def one_line(message):
    assert message.splitlines() == [message]
    assert len(message) < 6_000
    message.encode()


def texts(found: Given) -> None:
    documents = {document.id: document for document in found.documents}
    said = [text for one in found.documents for text in (one.id, one.text, one.title, one.source)]
    for chunk in found.chunks:
        said += [chunk.id, chunk.text]
        assert chunk.start is None or documents[chunk.document].text.startswith(chunk.text, chunk.start)
    said += [text for one in found.entities for text in (one.name, one.type, one.description, *one.chunks)]
    said += [text for one in found.relations for text in (one.source, one.target, one.description, *one.keywords)]
    for text in said:
        assert "\0" not in text
        text.encode()


def test_the_sound_directory_is_read(check):
    assert len(check().relations) == 1


@pytest.mark.parametrize("name", SEEDS)
def test_a_file_of_any_bytes(check, name):
    @settings(deadline=None)
    @given(st.binary(max_size=1_000))
    def holds(content):
        check(**{name: content})

    holds()


@pytest.mark.parametrize("name", SEEDS)
def test_a_file_that_was_spoilt(check, name):
    @settings(deadline=None)
    @given(spoilt([SEEDS[name]]))
    def holds(content):
        check(**{name: content})

    holds()


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)
NAMES = st.sampled_from(["content", "full_doc_id", "chunk_order_index", "file_path"])
RECORDS = st.dictionaries(
    st.sampled_from(["c1", "c2", "doc", "", "\ud83d", "a\nb\0"]), st.dictionaries(NAMES, VALUES) | VALUES
)


@pytest.mark.parametrize("name", [CHUNKS, DOCUMENTS])
def test_records_of_wrong_types_and_with_missing_keys(check, name):
    sound = json.loads(SEEDS[name])

    @settings(deadline=None)
    @given(RECORDS, st.dictionaries(NAMES, VALUES, max_size=2))
    def holds(records, changes):
        first = next(iter(sound))
        check(**{name: json.dumps(sound | records).encode()})
        check(**{name: json.dumps(sound | {first: sound[first] | changes}).encode()})

    holds()


NODES = st.sampled_from(["AURORA", '"AURORA"', "RHEE", "", " ", "e\u0301", "\u202e", "&lt;SEP&gt;", "x&#10;y"])
DATA = st.lists(
    st.tuples(
        st.sampled_from(["d0", "d1", "d2", "d3", "d4", "d9", ""]), NODES | st.sampled_from(["c1", "1e999", "nan", "-1"])
    ),
    max_size=4,
).map(lambda pairs: "".join(f'<data key="{name}">{value}</data>' for name, value in pairs))
ELEMENTS = st.one_of(
    st.builds(lambda name, data: f"<node id='{name}'>{data}</node>", NODES, DATA),
    st.builds(lambda a, b, data: f"<edge source='{a}' target='{b}'>{data}</edge>", NODES, NODES, DATA),
    DATA,
    st.sampled_from(
        ["<node/>", "<edge/>", "<graphml>", "</graphml>", "<node id='N'><node id='M'/></node>", "<g:node id='X'/>"]
    ),
)


@settings(deadline=None)
@given(st.lists(ELEMENTS, max_size=6))
def test_graphs_of_elements_in_any_order(check, elements):
    body = f"<graph>{''.join(elements)}</graph>"
    check(**{GRAPH: GRAPHML.replace("<graph ", f"{body}<graph ", 1).encode()})


@pytest.mark.parametrize("outside", ["/etc/passwd", "../../../../etc/passwd", "a/\0b", "/" * 5_000, "~root/.ssh"])
def test_a_path_in_a_record_is_a_name_and_nothing_that_is_opened(check, outside):
    found = check(**{DOCUMENTS: json.dumps({"doc": {"content": TEXT, "file_path": outside}}).encode()})
    assert found is None or [document.text for document in found.documents] == [TEXT]


@pytest.mark.parametrize("name", ["x" * 5_000, "nu\0ll", "a.txt/inside", ""])
def test_a_directory_that_cannot_be_one_is_one_error(tmp_path, name):
    (tmp_path / "a.txt").write_text("x")
    assert outcome(f"{tmp_path}/{name}") is None


@pytest.mark.parametrize("name", SEEDS)
def test_links_that_lead_nowhere_round_or_to_a_device_are_one_error(check, tmp_path, name):
    check()
    for target in (tmp_path / "gone", tmp_path / name, Path("/dev/zero"), tmp_path):
        for each, content in SEEDS.items():
            (tmp_path / each).unlink(missing_ok=True)
            (tmp_path / each).write_bytes(content)
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to(target)
        assert outcome(tmp_path) is None
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert outcome(tmp_path) is None


def test_a_graph_nested_as_deep_as_no_person_writes(check):
    for tag in ("node id='a'", "data key='d0'", "x"):
        name = tag.split()[0]
        check(**{GRAPH: f"<graphml>{f'<{tag}>' * 200_000}{f'</{name}>' * 200_000}</graphml>".encode()})
