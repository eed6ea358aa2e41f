"""Text documents of a data set's files."""

from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.sources.json_files import text_of
from hgmem.values.inputs import Document

_TITLE_LENGTH = 120


def text_documents(folder: Path) -> list[Document]:
    """Return a document for each text file of a folder, in order of names, with its first line as title."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return [text_document(path) for path in files]


def text_document(path: Path) -> Document:
    """Return a text file as a document: its id is the name without suffix, its title the first line with text."""
    text = text_of(path)
    if not text.strip():
        raise DocumentError(f"{str(path)!r}: it is empty: remove it, or add its text")
    first = next(line.strip() for line in text.splitlines() if line.strip())
    return Document(id=path.stem, title=first[:_TITLE_LENGTH], source=path.name, text=text)
