"""Formats by suffix, converted documents and skipped items, and the texts and titles of files."""

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from hgmem.text.segmentation import TITLE_LENGTH, collapse, headings
from hgmem.values.inputs import Document, Scalar, Skipped

FormatName: TypeAlias = Literal["text", "json", "jsonl", "table", "html", "docx", "pdf"]
Item: TypeAlias = Document | Skipped
PathLike: TypeAlias = str | os.PathLike[str]

MARK = "\ufeff"
NULLS = "binary: it contains null bytes"
_MARKUP = ("bs4", "lxml", "markdownify")
_REASON_LENGTH = 300
_TITLE_WITHIN = 20_000  # characters that are searched for a heading


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format, which is converted in a subprocess if it needs packages."""

    name: FormatName
    suffixes: tuple[str, ...]
    packages: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """The missing packages with the command to install them, else `''`."""
        absent = [package for package in self.packages if find_spec(package) is None]
        return f"{' and '.join(absent)} not installed: run pip install 'hgmem[{self.name}]'" if absent else ""


_TEXT = Format(name="text", suffixes=(".txt", ".md"))
_FORMATS = (
    _TEXT,
    Format(name="json", suffixes=(".json",)),
    Format(name="jsonl", suffixes=(".jsonl",)),
    Format(name="table", suffixes=(".csv", ".tsv")),
    Format(name="html", suffixes=(".html", ".htm"), packages=_MARKUP),
    Format(name="docx", suffixes=(".docx",), packages=("mammoth", *_MARKUP)),
    Format(name="pdf", suffixes=(".pdf",), packages=("pypdf",)),
)
_BY_SUFFIX = {suffix: format_ for format_ in _FORMATS for suffix in format_.suffixes}

SUFFIXES = tuple(_BY_SUFFIX)


def format_of(path: Path) -> Format:
    """Return the format of the suffix, or text for any other suffix."""
    return _BY_SUFFIX.get(path.suffix.lower(), _TEXT)


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


def printable(path: PathLike) -> str:
    """Return the path as text that can be encoded."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def why(error: OSError) -> str:
    """Return the operating system's message."""
    return error.strerror or type(error).__name__


def one_line(text: str) -> str:
    """Return the text as one line that can be encoded, truncated to `_REASON_LENGTH`."""
    return printable(collapse(text)[:_REASON_LENGTH])


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
            return title[:TITLE_LENGTH]
    return ""


def first_line(text: str) -> str:
    """Return the first line with a letter if it is short enough for a title, else `''`."""
    lines = (title_line(line) for line in text[:_TITLE_WITHIN].splitlines() if any(map(str.isalpha, line)))
    title = next(lines, "")
    return title if len(title) < TITLE_LENGTH else ""


def title_line(text: str) -> str:
    """Return the text as one line, truncated to the length of a title."""
    return collapse(text)[:TITLE_LENGTH]
