"""What systems are measured on: documents, and questions with their reference answers and evidence."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hgmem.errors import DocumentError
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


MOST = 10  # problems that are told of a file
_LONGEST = 90  # characters of one


class Problems:
    """The problems of one file, each with its line and field."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []

    def add(self, fact: str, *, line: int = 0, field: str = "") -> None:
        """Note a problem. Line 0 is the whole file."""
        place = ", ".join(
            part for part in (f"line {line}" if line else "", f"field {field!r}" if field else "") if part
        )
        text = f"{place}: {fact}" if place else fact
        self._lines.append(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")

    def add_invalid(self, error: ValidationError, *, line: int) -> None:
        """Note what pydantic refuses of a line."""
        for one in error.errors(include_url=False):
            field = ".".join(str(part) for part in one["loc"])
            fact = one["msg"].removeprefix("Value error, ")
            self.add(fact[:1].lower() + fact[1:], line=line, field=field)

    def check(self) -> None:
        """Raise `DocumentError` with up to ten problems if there are any."""
        if not self._lines:
            return
        more = len(self._lines) - MOST
        told = [*self._lines[:MOST], *([f"{more} more"] if more > 0 else [])]
        raise DocumentError(f"{str(self.path)!r}: " + ";\n".join(told))


def shortened(text: str) -> str:
    """Return a text in quotation marks, cut to what a message has room for."""
    return repr(text if len(text) <= 20 else f"{text[:19]}…")
