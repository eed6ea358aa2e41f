"""Convert PDF to text, with a form feed between pages."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hgmem.sources.files.items import Converted, UnusableError, first_line, heading
from hgmem.text.segmentation import TITLE_LENGTH, collapse

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MOST_PAGES = 10_000
PAGE_BORDER = "\n\f"
LARGER = 1.1  # times the size of most of the text: a heading's
MOST_OF_HEADINGS = 0.2  # of the characters; else the larger font is another text's
_NO_TITLES = {"untitled", "untitled document", "document", "none"}


def convert(data: bytes) -> Converted:
    """Return the text of all pages, headings marked as in Markdown, with unreadable pages left empty and reported.

    The title is in the document's properties, else its first heading or line.
    """
    reader = _opened(data)
    pages: list[str] = []
    pieces: list[_Piece] = []
    unread: dict[int, str] = {}
    for number in range(1, len(reader.pages) + 1):
        try:
            text, drawn = _extracted(reader.pages[number - 1])
            pages.append(text.rstrip().replace("\f", "\n"))
            pieces += drawn
        except MemoryError:
            raise
        except Exception as error:  # one unreadable page must not lose the others
            pages.append("")
            unread[number] = f"page not read: {type(error).__name__}: {error}"
    text = PAGE_BORDER.join(_marked(pages, pieces))
    if not text.strip():
        raise UnusableError(next(iter(unread.values()), "no text, only scanned pages: run OCR first"))
    return Converted(
        text=text, title=_title(reader) or heading(text) or first_line(text), metadata=_metadata(reader), unread=unread
    )


class _Piece(NamedTuple):
    text: str
    size: float  # of the font
    bold: bool


def _extracted(page: "PageObject") -> tuple[str, list[_Piece]]:
    """Return a page's text, and the pieces in which it is drawn."""
    pieces: list[_Piece] = []

    def visit(text: str, *state: Any) -> None:
        around, matrix, font, size = state
        name = str((font or {}).get("/BaseFont", ""))
        pieces.append(_Piece(text, round(abs(size * matrix[3] * around[3]), 1), "bold" in name.lower()))

    text = page.extract_text(visitor_text=visit)
    return text, [*pieces, _Piece("\n", 0.0, False)]


def _marked(pages: Sequence[str], pieces: Sequence[_Piece]) -> Iterator[str]:
    """Yield the pages, with marks before lines whose font is larger than that of most of the text, or alone is bold."""
    drawn = Counter[tuple[float, bool]]()
    for piece in pieces:
        drawn[piece.size, piece.bold] += len(piece.text.strip())
    size, bold = max(drawn, key=lambda font: drawn[font], default=(0.0, False))
    found: list[str] = []
    for line in _lines(pieces):
        text = collapse("".join(piece.text for piece in line))
        outstanding = all(piece.size > LARGER * size or (piece.bold and not bold) for piece in line)
        plain = text[-1:] not in ".,;:" and ". . ." not in text and "..." not in text  # no end of a text, no contents
        if outstanding and plain and len(text) <= TITLE_LENGTH and any(map(str.isalpha, text)):
            found.append(text)
    if sum(map(len, found)) > MOST_OF_HEADINGS * sum(drawn.values()):
        found = []
    for page in pages:
        yield "\n".join(f"# {line}" if collapse(line) in found else line for line in page.split("\n"))


def _lines(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the pieces of each line, without those that show nothing."""
    line: list[_Piece] = []
    for piece in pieces:
        for at, text in enumerate(piece.text.split("\n")):
            if at:
                yield line
                line = []
            if text.strip():
                line.append(piece._replace(text=text))
    yield line


def _opened(data: bytes) -> "PdfReader":
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    try:
        reader = PdfReader(io.BytesIO(data))
        count = len(reader.pages)
    except FileNotDecryptedError:
        raise UnusableError("encrypted: save it without a password") from None
    except DependencyError:  # AES with an empty password, readable once the package is installed
        raise UnusableError("encrypted: run pip install cryptography, or save it without encryption") from None
    if count > MOST_PAGES:
        raise UnusableError(f"{count:,} pages are above the limit of {MOST_PAGES:,}: split it")
    return reader


def _title(reader: "PdfReader") -> str:
    title = _property_text(lambda: reader.metadata and reader.metadata.title)
    return "" if title.strip().lower() in _NO_TITLES else title


def _metadata(reader: "PdfReader") -> dict[str, str | int]:
    author = _property_text(lambda: reader.metadata and reader.metadata.author)
    date = _property_text(
        lambda: reader.metadata and reader.metadata.creation_date and reader.metadata.creation_date.isoformat()
    )
    return {"author": author, "date": date, "pages": len(reader.pages)}


def _property_text(read: Callable[[], object]) -> str:
    """Return a property's value, or `''` if it is missing or damaged."""
    try:
        return str(read() or "")
    except Exception:
        return ""
