"""The results of reading: documents, skipped items, and the reasons."""

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.text.segmentation import headings
from hgmem.values.inputs import Document, Scalar, Skipped

Item: TypeAlias = Document | Skipped
Name: TypeAlias = str | os.PathLike[str]

_REASON_LENGTH = 300


class UnusableError(Exception):
    """Why a file or a record is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The text of a converted file.

    `unread` holds the reasons for skipped pages, by page number.
    """

    text: str
    title: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    unread: Mapping[int, str] = field(default_factory=dict)


def printable(path: Name) -> str:
    """Return the path as text that can be encoded."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def why(error: OSError) -> str:
    """Return the operating system's message."""
    return error.strerror or type(error).__name__


def one_line(text: str) -> str:
    """Return the text as one line that can be encoded, truncated to `_REASON_LENGTH`."""
    return printable(" ".join(text.split())[:_REASON_LENGTH])


MARK = "\ufeff"
NULLS = "binary: it contains null bytes"
_TITLE_WITHIN = 20_000  # characters that are searched for a heading
_TITLE_LENGTH = 120


def decode(data: bytes) -> str:
    """Return the text without its byte-order mark, with line ends unchanged."""
    wide = is_wide(data)
    try:
        text = data.decode("utf-16" if wide else "utf-8")
    except UnicodeDecodeError as error:
        if not wide and b"\0" in data:
            raise UnusableError(NULLS) from None
        name = "UTF-16" if wide else "UTF-8"
        raise UnusableError(f"not {name} at byte {error.start}: save it as UTF-8") from None
    if "\0" in text:
        raise UnusableError(NULLS)
    return text.removeprefix(MARK)


def is_wide(data: bytes) -> bool:
    """Return whether the data begins with the byte-order mark of UTF-16."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def heading(text: str) -> str:
    """Return the first Markdown heading outside code blocks, else `''`."""
    for line in headings(text[:_TITLE_WITHIN]):
        title = text[slice(*line)].lstrip("#").strip()
        bare = title.rstrip("#")  # closing marks follow a blank, so `# C#` keeps its own
        if title := title if bare and not bare[-1].isspace() else bare.strip():
            return title[:_TITLE_LENGTH]
    return ""


def first_line(text: str) -> str:
    """Return the first line with a letter if it is short enough for a title, else `''`."""
    lines = (title_line(line) for line in text[:_TITLE_WITHIN].splitlines() if any(map(str.isalpha, line)))
    title = next(lines, "")
    return title if len(title) < _TITLE_LENGTH else ""


def title_line(text: str) -> str:
    """Return the text as one line, truncated to the length of a title."""
    return " ".join(text.split())[:_TITLE_LENGTH]
