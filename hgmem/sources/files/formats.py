"""The supported file formats, with their suffixes and required packages."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "json", "jsonl", "table", "html", "docx", "pdf"]

_MARKUP = ("bs4", "lxml", "markdownify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format, which is converted in a subprocess if it needs packages."""

    kind: Kind
    suffixes: tuple[str, ...]
    packages: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """The missing packages with the command to install them, else `''`."""
        absent = [package for package in self.packages if find_spec(package) is None]
        return f"{' and '.join(absent)} not installed: run pip install 'hgmem[{self.kind}]'" if absent else ""


_TEXT = Format(kind="text", suffixes=(".txt", ".md"))
_FORMATS = (
    _TEXT,
    Format(kind="json", suffixes=(".json",)),
    Format(kind="jsonl", suffixes=(".jsonl",)),
    Format(kind="table", suffixes=(".csv", ".tsv")),
    Format(kind="html", suffixes=(".html", ".htm"), packages=_MARKUP),
    Format(kind="docx", suffixes=(".docx",), packages=("mammoth", *_MARKUP)),
    Format(kind="pdf", suffixes=(".pdf",), packages=("pypdf",)),
)
_BY_SUFFIX = {suffix: format_ for format_ in _FORMATS for suffix in format_.suffixes}

SUFFIXES = tuple(_BY_SUFFIX)


def format_of(path: Path) -> Format:
    """Return the format of the suffix, or text for any other suffix."""
    return _BY_SUFFIX.get(path.suffix.lower(), _TEXT)
