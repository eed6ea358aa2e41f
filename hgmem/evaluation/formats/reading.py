"""Text, JSON and JSON Lines of a data set's files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hgmem.errors import DocumentError, UsageError
from hgmem.text.segmentation import has_half_pair
from hgmem.values.inputs import Document

_TITLE_LENGTH = 120


def text_of(path: Path) -> str:
    """Return a file's text, its line ends as line feeds, without a byte-order mark."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{str(path)!r} does not exist: correct the path, or add the file") from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{str(path)!r}, byte {error.start}: not UTF-8: save it as UTF-8") from error
    except OSError as error:
        raise DocumentError(f"{str(path)!r}: {error.strerror or error}") from error
    if "\0" in text or has_half_pair(text):
        raise DocumentError(f"{str(path)!r}: it has a null character or an unpaired surrogate: remove it")
    return text


def json_of(path: Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"{str(path)!r}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from error
    except RecursionError:
        raise DocumentError(f"{str(path)!r}: JSON nested too deeply") from None


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers from 1."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            yield number, line


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
