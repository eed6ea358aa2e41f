"""Conversion of PDF, HTML and Word documents: text, title, metadata."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import PAGE, docx, paragraph, pdf, table
from pypdf import PdfReader, PdfWriter

from hgmem.sources.files import converter_worker, items_of, load, markup, word
from hgmem.sources.files import pdf as pdf_format
from hgmem.sources.files import records as tables
from hgmem.sources.files.converter_process import SECONDS, ConverterProcess
from hgmem.sources.files.items import SUFFIXES
from hgmem.values.inputs import Document, Skipped

GUIDE = Path(__file__).parents[2] / "docs" / "documents.md"
BOOK = pdf(["The Ferry", "Captain Rhee kept the log."], ["She left Port Ellis", "at dawn (caf\u00e9)."])


@pytest.fixture(scope="module")
def converter() -> Iterator[ConverterProcess]:
    with ConverterProcess(seconds=30) as opened:
        yield opened


@pytest.fixture
def only(converter, tmp_path):
    """Reads a file with this name and content, which must give one item."""

    def read(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (item,) = items_of(path, converter=converter, text_field="text")
        return item

    return read


# PDF -----------------------------------------------------------------------------------------------------------


def test_the_pages_of_a_pdf_are_lines_with_a_form_feed_between_pages(only, tmp_path):
    document = only("ferry.pdf", BOOK)
    assert document.text.split("\f") == [
        "The Ferry\nCaptain Rhee kept the log.\n",
        "She left Port Ellis\nat dawn (caf\u00e9).",
    ]
    assert document.id == document.source == str(tmp_path / "ferry.pdf")
    assert (document.title, document.metadata) == ("The Ferry", {"pages": 2})


def test_lines_of_a_pdf_in_a_larger_font_are_headings(only):
    def drawn(*lines: tuple[int, str]) -> bytes:
        shown = "".join(f"/F1 {size} Tf ({line}) Tj T*\n" for size, line in lines)
        return f"BT 20 TL 72 720 Td\n{shown}ET".encode()

    body = [(11, "Captain Rhee kept the log of the ferry, and wrote it up at night.")] * 9
    contents = (16, "The night of the storm . . . . 7")
    lines = [(16, "The night of the storm"), *body, (16, "Of the log"), contents, (16, "Told by Rhee."), (16, "12")]
    document = only("ferry.pdf", pdf([], stream=drawn(*lines)))
    assert [line for line in document.text.splitlines() if line.startswith("#")] == [
        "# The night of the storm", "# Of the log",
    ]  # fmt: skip
    form = drawn(*body, *[(16, "All in large type, a page of it")] * 9)
    assert "#" not in only("form.pdf", pdf([], stream=form)).text


def test_a_pdf_says_its_title_author_and_date(only):
    info = {"Title": "The\\nLog", "Author": "Zo\\353 Marsh", "CreationDate": "D:19990102030405+01'00'"}
    document = only("a.pdf", pdf(["Text."], info=info))
    assert document.title == "The Log"
    assert document.metadata == {"author": "Zo\u00eb Marsh", "date": "1999-01-02T03:04:05+01:00", "pages": 1}


@pytest.mark.parametrize(("line", "title"), [("12. 3. 4", "a"), ("x" * 200, "a"), ("# Heading", "Heading")])
def test_a_pdf_without_a_title_takes_a_line_that_could_be_one_else_its_name(only, line, title):
    assert only("a.pdf", pdf([line], info={"Title": "untitled"})).title == title


def test_an_empty_page_counts_where_pages_are_counted_by_their_borders(only):
    assert only("a.pdf", pdf(["One"], [], ["Three"])).text.split("\f")[2] == "Three"


def test_pages_without_text_are_pictures(only):
    assert "OCR" in only("scan.pdf", pdf([], [])).reason


@pytest.mark.parametrize(("algorithm", "reason"), [("RC4-128", "without a password"), ("AES-256", "encrypt")])
def test_an_encrypted_pdf_is_skipped_with_the_remedy(only, algorithm, reason):
    if algorithm == "AES-256":
        pytest.importorskip("cryptography")
    assert reason in only("a.pdf", encrypted("secret", algorithm)).reason


def test_a_pdf_that_only_forbids_printing_is_read(only):
    assert "Captain Rhee" in only("a.pdf", encrypted("", "RC4-128")).text


def encrypted(password, algorithm):
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(BOOK)))
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    held = io.BytesIO()
    writer.write(held)
    return held.getvalue()


# HTML ----------------------------------------------------------------------------------------------------------


def test_a_page_keeps_headings_lists_and_tables_and_drops_what_is_not_read(only):
    document = only("aurora.html", PAGE)
    assert document.text.split("\n\n") == [
        "# The Aurora",
        "Captain Rhee kept the log of the ferry.",
        "She left Port Ellis at dawn.",
        "## Cargo",
        "- Salt\n- Rope",
        "| Crate | Owner |\n| --- | --- |\n| 7 | Marian Dace |",
        "A lamp on the quay",
    ]
    assert document.title == "The Aurora & her log | Harbour Gazette"
    assert document.metadata == {"author": "Zo\u00eb Marsh", "date": "1901-10-12"}


@pytest.mark.parametrize(
    "content",
    [
        "<p>caf\u00e9 \u2013 1",
        b"\xef\xbb\xbf<p>caf\xc3\xa9 \xe2\x80\x93 1",
        "<p>caf\u00e9 \u2013 1".encode("utf-16"),
        "<p>caf\u00e9 \u2013 1".encode("cp1252"),
        '<meta charset="ISO-8859-1"><p>caf\u00e9 \u2013 1'.encode("cp1252"),
        '<meta http-equiv="Content-Type" content="text/html; charset=macintosh"><p>caf\u00e9 \u2013 1'.encode(
            "mac-roman"
        ),
        '<?xml version="1.0" encoding="gb18030"?><p>caf\u00e9 \u2013 1'.encode("gb18030"),
        '<meta charset="zlib"><p>caf\u00e9 \u2013 1',
        '<meta charset="punycode"><p>caf\u00e9 \u2013 1',
        '<meta charset="utf-16"><p>caf\u00e9 \u2013 1',
    ],
)
def test_a_page_is_decoded_by_its_mark_else_as_it_declares_else_by_what_fits(only, content):
    assert only("a.htm", content).text == "caf\u00e9 \u2013 1"


def test_a_page_without_a_title_takes_its_heading_else_its_name(only):
    assert only("a.html", "<h2>Salt</h2><p>x").title == "Salt"
    assert only("a.html", "<title> </title><p>x").title == "a"


def test_what_markdown_would_read_as_marks_stays_as_it_was_written(only):
    text = "a_b * c # d [e] `f` 1. g"
    assert only("a.html", f"<p>{text}").text == text


def test_code_keeps_its_lines(only):
    assert only("a.html", "<p>x</p><pre>if a:\n    b()</pre>").text == "x\n\n```\nif a:\n    b()\n```"


@pytest.mark.parametrize(("content", "reason"), [("<p> </p>", "empty"), ("<p>a\0b", "null bytes")])
def test_a_page_without_text_is_skipped(only, content, reason):
    assert reason in only("a.html", content).reason


# Word ----------------------------------------------------------------------------------------------------------


def test_a_word_document_keeps_headings_and_tables(only):
    blocks = [
        paragraph("The Aurora", "Title"),
        paragraph("Cargo", "Heading2"),
        paragraph("Salt & rope_s."),
        table(["Crate", "Owner"], ["7", "Marian Dace"]),
    ]
    document = only("a.docx", docx(*blocks))
    assert document.text.split("\n\n") == [
        "# The Aurora",
        "## Cargo",
        "Salt & rope_s.",
        "| Crate | Owner |\n| --- | --- |\n| 7 | Marian Dace |",
    ]
    assert (document.title, document.metadata) == ("The Aurora", {})


def test_a_word_document_says_its_title_author_and_date(only):
    said = "<dc:title>The Log</dc:title><dc:creator>Zo\u00eb</dc:creator>"
    document = only("a.docx", docx(paragraph("x"), properties=f"{said}<dcterms:created>1901-10-12</dcterms:created>"))
    assert (document.title, document.metadata) == ("The Log", {"author": "Zo\u00eb", "date": "1901-10-12"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "save it as .docx without a password"),
        (docx(), "empty"),
        (docx(parts={"word/document.xml": "<w:document"}), "XML is invalid"),
    ],
)
def test_what_is_no_word_document_is_skipped_with_the_remedy(only, content, reason):
    assert reason in only("a.docx", content).reason


# Documented behaviour ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not GUIDE.is_file(), reason="the documents are not in the wheel")
def test_the_guide_names_every_suffix_and_limit() -> None:
    text = GUIDE.read_text("utf-8")
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in text] == []
    limits = [
        converter_worker.MOST_CHARACTERS,
        pdf_format.MOST_PAGES,
        word.MOST_PARTS,
        tables.MOST_ROWS,
        tables.MOST_COLUMNS,
    ]
    limits += [markup.MOST_DEPTH, word.MOST_RATIO, word.MOST_XML // 1_000_000, int(SECONDS)]
    assert [limit for limit in limits if f"{limit:,}" not in text] == []


# Missing packages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("a.pdf", "pypdf", "pdf"), ("a.html", "markdownify", "html"), ("a.docx", "mammoth", "docx")],
)
def test_a_format_whose_extra_is_missing_is_skipped_with_the_command(tmp_path, monkeypatch, name, package, extra):
    (tmp_path / name).write_bytes(b"anything")
    (tmp_path / "b.txt").write_text("Text.")
    monkeypatch.setitem(sys.modules, package, None)
    skipped, document = load(tmp_path, max_bytes=1_000)
    assert skipped == Skipped(
        path=str(tmp_path / name), reason=f"{package} not installed: run pip install 'hgmem[{extra}]'"
    )
    assert isinstance(document, Document)


def test_text_needs_no_process_apart(tmp_path):
    (tmp_path / "b.txt").write_text("Text.")
    with ConverterProcess() as converter:
        assert list(items_of(Path(tmp_path / "b.txt"), converter=converter, text_field="text"))
        assert converter._process is None
