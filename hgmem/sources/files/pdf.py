"""Convert PDF to text, with a form feed between pages."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from hgmem.sources.files.items import Converted, UnusableError, first_line, heading

if TYPE_CHECKING:
    from pypdf import PdfReader

MOST_PAGES = 10_000
PAGE_BORDER = "\n\f"
_NO_TITLES = {"untitled", "untitled document", "document", "none"}


def convert(data: bytes) -> Converted:
    """Return the text of all pages, with unreadable pages left empty and reported.

    The title is in the document's properties, else its first heading or line.
    """
    reader = _opened(data)
    pages: list[str] = []
    unread: dict[int, str] = {}
    for number in range(1, len(reader.pages) + 1):
        try:
            pages.append(reader.pages[number - 1].extract_text().rstrip().replace("\f", "\n"))
        except MemoryError:
            raise
        except Exception as error:  # one unreadable page must not lose the others
            pages.append("")
            unread[number] = f"page not read: {type(error).__name__}: {error}"
    text = PAGE_BORDER.join(pages)
    if not text.strip():
        raise UnusableError(next(iter(unread.values()), "no text, only scanned pages: run OCR first"))
    return Converted(
        text=text, title=_title(reader) or heading(text) or first_line(text), metadata=_metadata(reader), unread=unread
    )


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
