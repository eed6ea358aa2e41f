"""A folder with a file of every format, indexed into a real Neo4j: offsets are correct, and each format is cited."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import docx, paragraph, pdf, table
from dumping import dump
from typer.testing import CliRunner

from hgmem import HGMem, Settings
from hgmem.cli import app
from hgmem.sources.files import load
from hgmem.values.inputs import Document

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Harbour Gazette</title><script>track()</script></head>
<body><nav><a href="/">Home</a> <a href="/ships">Ships</a></nav><h1>The sale of the Halden Bell</h1>
<p>On Monday <b>Petra Lindqvist</b> sold the <a href="bell.html">Halden Bell</a> to the Orsa Foundry for nine
hundred crowns.</p><h2>The price</h2><p>Nobody in the harbour had seen such a price.</p></body></html>"""
FILES = {
    "log.pdf": pdf(
        ["Log of the Ferry Aurora", "Captain Rhee steered the Ferry Aurora to Port Ellis in the storm."],
        ["Captain Rhee hid the brass compass under the stairs", "of the Tallow Warehouse before he went ashore."],
    ),
    "gazette.html": PAGE.encode(),
    "report.docx": docx(
        paragraph("Report on the fire", "Heading1"),
        paragraph("Inspector Vane found that Dag Torsen burned the Corn Mill on Friday night."),
        table(["Witness", "Seen"], ["Eve Arno", "Dag Torsen with a lantern at the Corn Mill"]),
    ),
    "letters.csv": (
        b"id;title;text;year\n"
        b'ana;Letter to Ana;"Dear Ana,\nMarian Dace keeps the Silver Key in the clock of the Town Hall.";1901\n'
        b"bo;Letter to Bo;The Town Hall is closed on Sundays.;1902\n"
    ),
}
QUESTIONS = {
    "log.pdf": "Where did Captain Rhee hide the brass compass?",
    "gazette.html": "Who sold the Halden Bell to the Orsa Foundry?",
    "report.docx": "Who burned the Corn Mill?",
    "letters.csv": "Where does Marian Dace keep the Silver Key?",
}


def written(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("formats"))


@pytest.fixture(scope="module")
def indexed(settings: Settings, folder: Path, module_corpus: str) -> Iterator[HGMem]:
    """The folder, indexed once for these tests."""
    with HGMem.open(module_corpus, **settings.model_dump(exclude_none=True)) as client:
        report = client.add(folder)
        assert (report.documents, report.failed, report.skipped) == (5, 0, [])
        yield client
        client.delete()


@pytest.fixture
def documents(folder: Path) -> list[Document]:
    return [item for item in load(folder, max_bytes=10**6) if isinstance(item, Document)]


def test_every_chunk_is_cut_from_its_document_where_it_says(
    indexed: HGMem, settings: Settings, documents: list[Document]
) -> None:
    found = dump(settings, indexed.corpus)
    texts = {document.title: document.text for document in documents}
    titles = {uid: row["title"] for uid, row in found.of("Document").items()}
    assert sorted(titles.values()) == sorted(texts)
    for chunk in found.of("Chunk").values():
        assert texts[titles[chunk["document"]]][chunk["start"] : chunk["end"]] == chunk["text"]


@pytest.mark.parametrize("name", FILES)
def test_a_question_is_answered_with_a_citation_out_of_each_format(
    indexed: HGMem, documents: list[Document], name: str
) -> None:
    sources = {document.title: document for document in documents}
    answer = indexed.ask(QUESTIONS[name], steps=2)
    assert answer.status == "answered"
    for citation in answer.citations:
        assert sources[citation.title].text[citation.start : citation.end] == citation.quote
    assert name in {Path(sources[citation.title].source).name for citation in answer.citations}


def test_the_same_files_again_write_nothing(indexed: HGMem, folder: Path) -> None:
    again = indexed.add(folder)
    assert (again.documents, again.unchanged, again.chunks) == (0, 5, 0)


def test_what_a_file_says_of_itself_is_kept(indexed: HGMem, settings: Settings) -> None:
    metadata = {row["title"]: row["metadata"] for row in dump(settings, indexed.corpus).of("Document").values()}
    assert metadata["Letter to Ana"] == '{"year":1901}'
    assert metadata["Log of the Ferry Aurora"] == '{"pages":2}'
    assert {"Harbour Gazette", "Report on the fire"} <= metadata.keys()


def test_the_command_names_what_is_hostile_and_indexes_the_rest(
    environment: dict[str, str], tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (written(tmp_path) / "bad.pdf").write_bytes(b"%PDF-1.7\n\nnothing")
    (tmp_path / "slow.html").write_bytes(b"<ol>" + b"<li>x" * 60_000)
    environment["HGMEM_MAX_FILE_SECONDS"] = "3"
    done = CliRunner().invoke(app, ["index", ".", "-c", corpus], env=environment)
    assert done.exit_code == 1
    assert "5 documents added, 0 unchanged" in done.stdout
    assert done.stdout.count("2 skipped") == 1
    assert f"skipped {tmp_path}/bad.pdf: damaged: " in done.stderr
    assert f"skipped {tmp_path}/slow.html: takes more than 3 s to read: raise HGMEM_MAX_FILE_SECONDS" in done.stderr
    CliRunner().invoke(app, ["delete", "-c", corpus, "--yes"], env=environment)
