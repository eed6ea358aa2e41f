"""Text, JSON and JSON Lines of files, with the place in each error."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hgmem.errors import DocumentError, UsageError
from hgmem.text.segmentation import has_half_pair


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
