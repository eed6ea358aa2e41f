"""What systems are measured on: documents, and questions with their reference answers and evidence."""

from dataclasses import dataclass
from pathlib import Path

from hgmem.values.inputs import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A piece of evidence: exact words of a document.

    `document` is the `Document.id`, `start` and `end` count code points of its text. `source` is the caller's id of the
    chunk or message that holds the words, where evidence was given so.
    """

    document: str
    text: str
    start: int | None = None
    end: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalQuestion:
    """A question with its reference answer. A true and a false claim that belong together share `pair`."""

    id: str
    kind: str
    question: str
    answer: str
    evidence: tuple[Evidence, ...] = ()
    pair: str = ""
    held_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Documents and the questions on them. A conversation is a document with a line a message.

    `graph` is an archive of hgmem or a LightRAG directory, to be imported in place of indexing the documents.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[EvalQuestion, ...]
    graph: Path | None = None
