"""Property tests: any file content gives valid documents or one-line reasons, without exceptions or endless loops.

`pytest --hypothesis-profile=thorough` tries 5,000 files of each kind.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterator

import pytest
from documents import PAGE, docx, paragraph, pdf, table, zipped
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mutating import spoilt

from hgmem.sources.files import items_of, load
from hgmem.sources.files.converter_process import ConverterProcess
from hgmem.sources.files.items import SUFFIXES
from hgmem.values.inputs import Document

SECONDS = 20.0
PDFS = [
    pdf(["The Ferry", "Captain Rhee (kept) the log."], ["At dawn."], info={"Title": "Log", "CreationDate": "D:1999"}),
    pdf([], ["x"], info={"Author": "\\376\\377\\330\\075"}),
]
PARTS = [paragraph("Cargo", "Heading1"), paragraph("Salt & rope."), table(["a", "b"], ["c", "d"])]
WHOLE = docx(*PARTS, properties="<title>x</title>")
JSONS = [
    json.dumps({"id": 7, "title": "The Lamp", "text": "Light.", "year": 1901, "who": None}).encode(),
    json.dumps([{"text": "# One\n"}, {"text": "Two", "id": "b", "n": 1.5, "deep": [{"a": [1]}]}]).encode(),
]
TABLES = [
    b'id,title,text,n\r\n1,One,"a ""b""\nc",2.5\r\n,,d,007\r\n',
    "text;who\nLight.;Zo\u00eb\n\nDark.;e\u0301\n".encode(),
    b"name\tvalue\nx\ty\n",
]
TEXTS = ["# Heading\n\ntext \u200f\u202etxet e\u0301 \U0001f469\u200d\U0001f467\r\n".encode(), "wide".encode("utf-16")]
SEEDS = {
    ".txt": TEXTS,
    ".md": TEXTS,
    ".json": JSONS,
    ".jsonl": [b"\n".join(JSONS)],
    ".csv": TABLES,
    ".tsv": TABLES,
    ".html": [PAGE.encode(), PAGE.encode("utf-16"), b"<meta charset=big5><ul><li>a<ul><li>b</ul></ul><dl><dt>c<dd>d"],
    ".htm": [PAGE.encode("cp1252")],
    ".docx": [WHOLE],
    ".pdf": PDFS,
}


@pytest.fixture(scope="module")
def converter() -> Iterator[ConverterProcess]:
    with ConverterProcess(seconds=SECONDS) as opened:
        yield opened


@pytest.fixture(scope="module")
def check(converter, tmp_path_factory):
    """Reads this content with this suffix, and checks the result."""
    folder = tmp_path_factory.mktemp("files")

    def read(suffix, content):
        path = folder / f"a{suffix}"
        path.write_bytes(content)
        began = time.monotonic()
        items = list(items_of(path, converter=converter, text_field="text"))
        assert time.monotonic() - began < 2 * SECONDS
        for item in items:
            if isinstance(item, Document):
                sound(item)
            else:
                assert item.reason.splitlines() == [item.reason]
                f"{item.path}{item.reason}".encode()
                assert len(item.reason) <= 300
                assert not item.reason.startswith(("takes more than", "crashed the converter")), item
        return items

    return read


def sound(document):
    assert document.text.strip()
    assert document.id.strip()
    assert len(document.title) <= 120
    said = [document.id, document.title, document.source, document.text, *document.metadata]
    said += [value for value in document.metadata.values() if isinstance(value, str)]
    for text in said:
        text.encode()
        assert "\0" not in text
    json.dumps(dict(document.metadata), allow_nan=False)


def test_every_suffix_has_files_to_spoil(check):
    assert set(SEEDS) == set(SUFFIXES)
    for suffix, seeds in SEEDS.items():
        for seed in seeds:
            assert any(isinstance(item, Document) for item in check(suffix, seed))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_bytes_at_all(check, suffix):
    @settings(deadline=None)
    @given(st.binary(max_size=2_000))
    @example(b"\0")
    @example(b"\xff\xfe\x00\xd8")
    def holds(content):
        check(suffix, content)

    holds()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_spoilt_files(check, suffix):
    @settings(deadline=None)
    @given(spoilt(SEEDS[suffix]))
    def holds(content):
        check(suffix, content)

    holds()


def test_word_documents_whose_parts_are_spoilt(check):
    @settings(deadline=None)
    @given(st.sampled_from(["word/document.xml", "docProps/core.xml", "_rels/.rels", "word/styles.xml"]), st.data())
    def holds(part, data):
        check(".docx", docx(*PARTS, parts={part: data.draw(spoilt(seeds))}))

    with zipfile.ZipFile(io.BytesIO(WHOLE)) as archive:
        seeds = [archive.read(name) for name in archive.namelist()]
    holds()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30),
            st.binary(max_size=200),
        ),
        max_size=6,
    )
)
def test_archives_of_anything(check, parts):
    check(
        ".docx",
        zipped(dict(parts)),
    )


NAMES = "p div ul ol li table tr td th pre code h1 h7 blockquote br dl dt dd b a img meta title svg"
TAGS = st.sampled_from(NAMES.split(" "))
MARKUP = st.lists(
    st.tuples(TAGS, st.sampled_from(["<{}>", "</{}>", "<{} colspan=9999 start=-1 href=x>", "<{}/>", "{}"]))
    | st.text(max_size=9),
    max_size=60,
)


@settings(deadline=None)
@given(MARKUP)
def test_tags_in_any_order(check, parts):
    markup = "".join(part if isinstance(part, str) else part[1].format(part[0]) for part in parts)
    check(".html", markup.encode("utf-8", "replace"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "title", "text", "x\ud83d"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_any_json(check, value):
    check(".json", json.dumps(value).encode())
    check(".jsonl", f"{json.dumps(value)}\n{json.dumps(value)}".encode())


FIELDS = st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=5), max_size=6)


@settings(deadline=None)
@given(FIELDS, st.sampled_from(",;\t|"))
def test_any_table(check, rows, delimiter):
    text = "\n".join(delimiter.join(row) for row in rows)
    check(".csv", text.encode())
    check(".tsv", text.encode())


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".json", b"[" * 100_000),
        (".json", b'{"text":' * 100_000 + b"1" + b"}" * 100_000),
        (".jsonl", b'{"text": [' * 50_000),
        (".html", b"<ul><li>" * 5_000),
        (".html", b"<table><tr><td>" * 2_000),
        (".html", b"<blockquote>x" * 2_000),
        (".csv", b'text\n"' + b"x" * 5_000_000),
        (".csv", b"\n" * 1_000_000),
        (".csv", b'"' * 1_000_001),
        (".csv", b"text\n" + b"," * 1_000_000),
        (".md", b"```\n" * 500_000),
        (".md", b"#" * 1_000_000),
    ],
)
def test_deep_and_endless_things(check, suffix, content):
    check(suffix, content)


def test_loading_them_all_raises_nothing(tmp_path):
    for suffix, seeds in SEEDS.items():
        for number, seed in enumerate(seeds):
            (tmp_path / f"{number}{suffix}").write_bytes(seed[: len(seed) * 2 // 3])
            (tmp_path / f"{number}-whole{suffix}").write_bytes(seed)
    items = list(load(tmp_path, max_bytes=10**6))
    assert len({item.source for item in items if isinstance(item, Document)}) >= sum(map(len, SEEDS.values()))
