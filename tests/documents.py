"""Generates real files of every format: PDF, Word documents as archives, and HTML pages. Reads a file."""

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from hgmem.sources.files import items_of
from hgmem.sources.files.converter_process import ConverterProcess
from hgmem.values.inputs import Document, Skipped

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)


def pdf(*pages: Iterable[str], info: Mapping[str, str] | None = None, stream: bytes | None = None) -> bytes:
    """Return a PDF with these pages of lines in Helvetica; `stream`, if given, is drawn on every page instead."""
    contents = [_drawn(lines) if stream is None else stream for lines in pages]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, content in enumerate(contents):
        resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * number} 0 R >>".encode())
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content))
    objects.append("<< {} >>".format(" ".join(f"/{name} ({said})" for name, said in (info or {}).items())).encode())
    return assembled(objects)


def assembled(objects: Iterable[bytes]) -> bytes:
    """Return a PDF of these objects: the first is its catalog, the last its metadata."""
    found = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(found))
        found += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(found)
    found += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    found += b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(places)
    found += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size + 1, size, start)
    return bytes(found)


def _drawn(lines: Iterable[str]) -> bytes:
    escaped = (line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines)
    shown = "".join(f"({line}) Tj T*\n" for line in escaped)
    return f"BT /F1 11 Tf 14 TL 72 720 Td\n{shown}ET".encode("cp1252")


def docx(*blocks: str, properties: str = "", parts: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return a Word document of these XML blocks; `parts` are added or replace its own parts."""
    target = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    whole: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{target}</Relationships>',
        "word/document.xml": f"<w:document {WORD}><w:body>{''.join(blocks)}</w:body></w:document>",
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"{properties}</cp:coreProperties>",
    }
    return zipped(whole | dict(parts or {}))


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip archive of these parts."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return held.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of a Word document in the style with this id."""
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{styled}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def table(*rows: Iterable[str]) -> str:
    """Return a table of a Word document."""
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


PAGE = """<!DOCTYPE html>
<html lang="en"><head>
<meta charset="utf-8"><title>The Aurora &amp; her log | Harbour Gazette</title>
<meta name="Author" content="Zo\u00eb Marsh"><meta property="article:published_time" content="1901-10-12">
<base href="http://localhost:1/"><link rel="stylesheet" href="http://localhost:1/style.css">
<style>p { color: red }</style><script>document.write("never read")</script></head>
<body><nav><ul><li><a href="/">Home</a></ul></nav>
<!-- a remark --><h1>The <em>Aurora</em></h1>
<p>Captain Rhee kept the <a href="log.html">log of the ferry</a>.<p>She left <b>Port Ellis</b> at dawn.
<h2>Cargo</h2><ul><li>Salt<li>Rope</ul>
<table><tr><th>Crate<th>Owner<tr><td>7<td>Marian Dace</table>
<p><img src="http://localhost:1/lamp.png" alt="A lamp on the quay"></p><p hidden>never shown</p>
<iframe src="http://localhost:1/frame.html">framed</iframe><?php echo "never run" ?>
</body></html>"""


def read_file(path: Path, *, text_field: str = "text") -> Iterator[Document | Skipped]:
    """Yield the documents of one file."""
    with ConverterProcess() as converter:
        yield from items_of(path, converter=converter, text_field=text_field)
