"""Data sets to measure with: documents, and questions with reference answers and evidence."""

from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.values.inputs import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One piece of evidence, as exact words of a document. `source` is the caller's id of the chunk or message."""

    document: str
    text: str
    start: int | None = None
    end: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalQuestion:
    """A question with its reference answer and evidence. `pair` ties true and false statements."""

    id: str
    kind: str
    question: str
    answer: str
    evidence: tuple[Evidence, ...] = ()
    pair: str = ""
    held_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Documents and questions. `graph` is an archive or a LightRAG directory to import in place of indexing."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[EvalQuestion, ...]
    graph: Path | None = None


def read_data(path: Path, *, format: str = "hgmem") -> DataSet:  # noqa: A002
    """Return the data set at a path. Raises `UsageError` for an unknown format."""
    raise UsageError(f"unknown format {format!r} of {str(path)!r}: no reader is installed")
