"""Malicious files: each is skipped in time with one line, has no effect, and the next file is read."""

import json
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import OFFICE, PACKAGE, PAGE, assembled, docx, paragraph, pdf, zipped

from hgmem.sources.files import converter_worker, items_of, load, word
from hgmem.sources.files import pdf as pdf_format
from hgmem.sources.files.converter_process import ConverterProcess
from hgmem.sources.files.converter_worker import _refuse, checked, reply
from hgmem.sources.files.items import Converted, UnusableError
from hgmem.values.inputs import Document, Skipped

SECONDS = 10.0
SLOW = b"<ol>" + b"<li>x" * 60_000  # numbering its items takes quadratic time
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(10))
BOMB = f'<!DOCTYPE w [{ENTITIES}]><w:document xmlns:w="w"><w:body>&e9;</w:body></w:document>'
OUTSIDE = '<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/hostname">]><w:document xmlns:w="w">&e;</w:document>'
LINKED = f'<Relationship Id="p1" Type="{OFFICE}/image" Target="file:///etc/hostname" TargetMode="External"/>'
PICTURE = (
    '<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing">'
    '<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData>'
    '<pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:blipFill>'
    f'<a:blip xmlns:r="{OFFICE}" r:link="p1"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline>'
    "</w:drawing></w:r></w:p>"
)
LINKING = docx(
    paragraph("A picture:"),
    PICTURE,
    parts={"word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{LINKED}</Relationships>'},
)
LAUNCHING = pdf(["Text."]).replace(
    b"/Type /Catalog", b"/Type /Catalog /OpenAction << /S /Launch /F (/bin/sh) >> /URI << /Base (http://localhost:1) >>"
)


@pytest.fixture(scope="module")
def converter() -> Iterator[ConverterProcess]:
    with ConverterProcess(seconds=SECONDS) as opened:
        yield opened


@pytest.fixture
def item(converter, tmp_path):
    """Reads a file with this name and content, which must give one item; fails if this takes twice the time limit."""

    def read(name, content, converter=converter):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        began = time.monotonic()
        (found,) = items_of(path, converter=converter, text_field="text")
        assert time.monotonic() - began < 2 * SECONDS
        if isinstance(found, Skipped):
            assert found.reason.splitlines() == [found.reason]
        return found

    return read


def flate(data, *, times=1):
    """Return a stream of the data, compressed `times` times."""
    for _ in range(times):
        data = zlib.compress(data, 9)
    filters = " ".join(["/FlateDecode"] * times).encode()
    return b"<< /Length %d /Filter [%b] >>\nstream\n%b\nendstream" % (len(data), filters, data)


def page(content, *objects, resources=b""):
    """Return a PDF of one page with this content stream, and further objects from 5 on."""
    kids = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"]
    one = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 9 9] /Resources << %b >> >>" % resources
    return assembled([*kids, one, content, *objects, b"<< >>"])


def forms(depth):
    """Return a PDF with nested forms, each of which draws the next one ten times."""
    made = []
    for number in range(depth):
        drawn = b"/X Do " * 10 if number < depth - 1 else b"BT (ha) Tj ET"
        names = b"/Resources << /XObject << /X %d 0 R >> >>" % (6 + number)
        head = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length %d %b >>" % (len(drawn), names)
        made.append(head + b"\nstream\n" + drawn + b"\nendstream")
    return page(b"<< /Length 5 >>\nstream\n/X Do\nendstream", *made, resources=b"/XObject << /X 5 0 R >>")


PDFS = {
    "a stream that unpacks to 300 MB": lambda: page(flate(b" " * 300_000_000)),
    "a stream packed twice": lambda: page(flate(b"\0" * 200_000_000, times=2)),
    "a hundred filters": lambda: page(b"<< /Length 1 /Filter [%b] >>\nstream\nx\nendstream" % (b"/A85 " * 100)),
    "forms within forms": lambda: forms(12),
    "arrays within arrays": lambda: page(flate(b"[" * 200_000)),
    "a tree of pages that leads round": lambda: pdf(["x"]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
    "a billion pages": lambda: pdf(["x"]).replace(b"/Count 1", b"/Count 999999999"),
    "a table that leads to itself": lambda: pdf(["x"]).replace(b"/Root", b"/Prev 9 /Root"),
    "a length that is its own": lambda: pdf(["x"]).replace(b"/Length", b"/Length 5 0 R /L"),
    "nothing but a head": lambda: b"%PDF-1.7\n" + b"1 0 obj\n" * 50_000,
}


@pytest.mark.parametrize("name", PDFS)
def test_a_hostile_pdf_ends_in_time(item, name):
    found = item("a.pdf", PDFS[name]())
    assert isinstance(found, Skipped) or len(found.text) < 1_000_000


def test_too_many_pages_are_refused(monkeypatch):
    monkeypatch.setattr(pdf_format, "MOST_PAGES", 1)
    with pytest.raises(UnusableError, match=r"2 pages are above the limit of 1"):
        pdf_format.convert(pdf(["a"], ["b"]))


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_kept(converter, tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf(["One"], ["Two"]).replace(b"<< /Length", b"<< /Filter /Bad /Length", 1))
    document, skipped = items_of(tmp_path / "a.pdf", converter=converter, text_field="text")
    assert document.text == "\n\fTwo"
    assert skipped.path == f"{tmp_path}/a.pdf#1"
    assert skipped.reason.startswith("page not read: ")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"word/document.xml": BOMB}, "document type"),
        ({"word/document.xml": BOMB.encode("utf-16")}, "document type"),
        ({"word/document.xml": OUTSIDE}, "document type"),
        ({"docProps/core.xml": BOMB}, "document type"),
        ({"any.bin": f"\n {BOMB}"}, "document type"),
        ({"word/media/a.png": b"\0" * 50_000_000}, "200 times"),
        ({f"{n}.txt": b"" for n in range(word.MOST_PARTS)}, "parts are above the limit"),
    ],
)
def test_a_hostile_word_document_is_refused_before_it_is_unpacked(item, parts, reason):
    assert reason in item("a.docx", docx(paragraph("x"), parts=parts)).reason


def test_a_word_document_with_too_much_xml_is_refused(monkeypatch):
    monkeypatch.setattr(word, "MOST_XML", 1_000)
    with pytest.raises(UnusableError, match=r"XML is above the limit of 1,000 bytes"):
        word.convert(docx(paragraph("x" * 2_000)))


def test_sizes_that_the_archive_lies_about_do_no_harm(item):
    whole = docx(paragraph("x"), parts={"word/document.xml": b" " * 50_000_000})
    small = whole.replace(struct.pack("<I", 50_000_000), struct.pack("<I", 500))
    assert isinstance(item("a.docx", small), Skipped)


def test_encrypted_parts_are_refused(item):
    whole = bytearray(zipped({"word/document.xml": "x"}))
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(sign) + place] |= 1
    assert "encrypted" in item("a.docx", bytes(whole)).reason


@pytest.mark.parametrize(
    "markup",
    [b"<div>" * 300, b"<div>" * 100_000, b"<font>x" * 1_000, b"<a " * 300_000, b"<!--" * 300_000, b"&" * 1_000_000],
)
def test_hostile_markup_ends_in_time(item, markup):
    item("a.html", b"<p>x" + markup)


def test_words_nested_as_deep_as_no_person_writes_are_read(item):
    inside = "<w:sdt><w:sdtContent>" * 1_000 + paragraph("deep") + "</w:sdtContent></w:sdt>" * 1_000
    assert item("a.docx", docx(inside)).text == "deep"


def test_a_word_document_does_not_say_how_it_is_converted(item):
    whole = docx(paragraph("x"), parts={"mammoth/style-map": "p => h1:fresh"})
    assert item("a.docx", whole).text == "x"


def test_converted_texts_are_whole_characters_without_nulls():
    found = checked(
        Converted(text="a\0\ud83d\ude00\udc00", title="\ud83d\n\0b", metadata={"author": "\udc00", "date": ""})
    )
    assert (found.text, found.title) == ("a\U0001f600\ufffd", "\ufffd b")
    assert found.metadata == {"author": "\ufffd"}


def test_too_long_a_text_is_refused(monkeypatch):
    monkeypatch.setattr(converter_worker, "MOST_CHARACTERS", 3)
    with pytest.raises(UnusableError, match=r"4 characters of text are above the limit of 3"):
        checked(Converted(text="text"))


# Converter subprocess ------------------------------------------------------------------------------------------


def test_a_file_that_takes_too_long_is_given_up_and_the_next_is_read(item):
    with ConverterProcess(seconds=4) as converter:
        assert item("a.html", SLOW, converter).reason == "takes more than 4 s to read: raise HGMEM_MAX_FILE_SECONDS"
        assert item("b.html", "<p>next", converter).text == "next"


def test_the_time_is_a_setting_of_loading(tmp_path):
    (tmp_path / "a.html").write_bytes(SLOW)
    (tmp_path / "b.txt").write_text("Text.")
    skipped, document = load(tmp_path, max_bytes=10**6, max_seconds=1)
    assert "more than 1 s" in skipped.reason
    assert document.text == "Text."


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux bounds the memory of a process")
def test_a_file_that_needs_too_much_memory_is_given_up_and_the_next_is_read(item):
    with ConverterProcess(seconds=60, memory=300_000_000) as converter:
        assert "300,000,000 bytes of memory" in item("a.html", b"x" * 60_000_000, converter).reason
        assert item("b.html", "<p>next", converter).text == "next"


def test_a_reader_that_dies_costs_one_file(item):
    with ConverterProcess(seconds=SECONDS) as converter:
        assert item("a.html", "<p>one", converter).text == "one"
        converter._process.kill()
        assert "crashed the converter (exit code -9)" in item("b.html", "<p>two", converter).reason
        assert item("c.html", "<p>three", converter).text == "three"


def test_the_process_ends_with_the_reading(tmp_path):
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text("<p>x")
    with ConverterProcess() as converter:
        next(items_of(tmp_path / "a.html", converter=converter, text_field="text"))
        process = converter._process
        assert process.poll() is None
    assert process.returncode is not None


def test_a_reader_that_cannot_be_started_is_a_reason(item, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with ConverterProcess() as converter:
        assert "'/nowhere/python'" in item("a.html", "<p>x", converter).reason


def test_the_process_imports_what_its_parent_can_wherever_that_is(item, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [tmp_path, *sys.path])  # some users add paths that are not strings
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with ConverterProcess() as converter:
        assert item("a.html", "<p>x", converter).text == "x"


@pytest.mark.parametrize("event", ["socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"])
def test_what_no_conversion_needs_is_refused_in_the_process(event):
    with pytest.raises(PermissionError):
        _refuse(event, ())
    _refuse("open", ())


PROGRAM = """
import json, sys
from pathlib import Path
sys.path[:] = json.loads(sys.argv[1])
from hgmem.sources.files.converter_worker import reply
paths = [Path(path) for path in sys.argv[2:]]
kinds = {".html": "html", ".docx": "docx", ".pdf": "pdf"}
seen = None
def hook(event, args):
    if seen is not None and event.startswith(("open", "socket.", "subprocess.", "os.exec", "os.posix_spawn", "urllib")):
        seen.append((event, str(args[0])))
sys.addaudithook(hook)
for path in paths:
    reply(path, kinds[path.suffix])
seen = []
replies = [reply(path, kinds[path.suffix]) for path in paths]
print(json.dumps([seen, [one.get("text") for one in replies]]))
"""


def test_no_conversion_opens_another_file_or_the_network(tmp_path):
    files = {"a.html": PAGE.encode(), "b.docx": LINKING, "c.pdf": LAUNCHING}
    paths = [tmp_path / name for name in files]
    for path in paths:
        path.write_bytes(files[path.name])
    command = [sys.executable, "-c", PROGRAM, json.dumps(sys.path), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    seen, texts = json.loads(done.stdout)
    assert seen == [["open", str(path)] for path in paths]
    assert [text.split("\n")[0] for text in texts] == ["# The Aurora", "A picture:", "Text."]


def test_a_converter_that_fails_in_any_way_gives_a_reason(tmp_path, monkeypatch):
    path = tmp_path / "a.pdf"
    path.write_bytes(b"x")
    for error, said in [
        (RecursionError(), "nested too deeply"),
        (ValueError("x"), "damaged: x"),
        (KeyError("a\nb"), "damaged: 'a\\nb'"),
    ]:
        monkeypatch.setitem(sys.modules["hgmem.sources.files.converter_worker"]._CONVERTERS, "pdf", raising(error))
        assert reply(path, "pdf") == {"reason": said}
    assert reply(tmp_path / "gone.pdf", "pdf") == {"reason": "No such file or directory"}


def raising(error):
    def convert(_):
        raise error

    return convert


def test_documents_after_hostile_ones_are_all_there(tmp_path):
    (tmp_path / "a.docx").write_bytes(docx(parts={"word/document.xml": BOMB}))
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "c.csv").write_text("text\nRow.\n")
    (tmp_path / "d.pdf").write_bytes(pdf(["Page."]))
    items = list(load(tmp_path, max_bytes=10**6))
    assert [item.text for item in items if isinstance(item, Document)] == ["Row.", "Page."]
    assert [Path(item.path).name for item in items if isinstance(item, Skipped)] == ["a.docx", "b.pdf"]
