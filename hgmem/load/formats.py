"""The one list of suffixes: what each kind of file is, and what reading it needs."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "json", "jsonl", "table", "html", "docx", "pdf"]

_MARKUP = ("bs4", "lxml", "markdownify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file; one that needs packages of others is converted by them, in a process apart."""

    kind: Kind
    suffixes: tuple[str, ...]
    packages: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What is not installed, with the remedy, else `''`."""
        absent = [package for package in self.packages if find_spec(package) is None]
        return f"{' and '.join(absent)} not installed: pip install 'hgmem[{self.kind}]'" if absent else ""


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
    """Return the format that the suffix stands for; any other is read as text."""
    return _BY_SUFFIX.get(path.suffix.lower(), _TEXT)
