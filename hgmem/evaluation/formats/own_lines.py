"""The lines of our own format, as pydantic validates them."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hgmem.errors import DocumentError
from hgmem.evaluation.data_set import Problems
from hgmem.sources.json_records import lines_of, text_of
from hgmem.text.segmentation import has_half_pair
from hgmem.values.inputs import Document, Scalar

L = TypeVar("L", bound="Line")


def _sound(text: str) -> str:
    if "\0" in text or has_half_pair(text):
        raise ValueError("it has a null character or an unpaired surrogate")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank: fill it in")
    return _sound(text)


Text = Annotated[str, AfterValidator(_sound)]
Filled = Annotated[str, AfterValidator(_filled)]
Place = Annotated[int, Field(ge=0)]


class Line(BaseModel):
    """A line of JSON, without fields of other names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DocumentLine(Line):
    """A line of `documents.jsonl`."""

    id: Filled
    text: Filled
    title: Text = ""
    metadata: dict[str, Scalar] = {}


class MessageLine(Line):
    """A line of `conversations.jsonl`. The first title of a conversation is its title."""

    conversation: Filled
    id: Filled
    time: datetime
    speaker: Filled
    text: Filled
    title: Text = ""


class EvidenceLine(Line):
    """A piece of evidence: a quote, a place in a document, a chunk or a message."""

    document: Text = ""
    quote: Text = ""
    start: Place | None = None
    end: Place | None = None
    chunk: Text = ""
    conversation: Text = ""
    message: Text = ""

    @model_validator(mode="after")
    def check_form(self) -> "EvidenceLine":
        """Raise if it is none or several of the forms."""
        forms = [bool(self.quote.strip()) or self.start is not None, bool(self.chunk), bool(self.message)]
        if sum(forms) != 1:
            raise ValueError("give one of quote, start and end, chunk, or message")
        if bool(self.conversation) > bool(self.message) or (self.chunk and self.document):
            raise ValueError("conversation belongs to message, document to quote or start and end")
        if self.end is not None and (self.start is None or self.end <= self.start):
            raise ValueError("end needs a smaller start")
        if self.start is not None and self.end is None and not self.quote:
            raise ValueError("start needs an end or a quote")
        return self


class QuestionLine(Line):
    """A line of `questions.jsonl`."""

    id: Filled
    kind: Filled
    question: Filled
    answer: Filled
    evidence: tuple[EvidenceLine, ...] = ()
    pair: Text = ""
    held_back: bool = False


def read_lines(path: Path, line_type: type[L], problems: Problems) -> Iterator[tuple[int, L]]:
    """Yield the valid lines of a file with their numbers, and note the problems of the others."""
    for number, text in lines_of(path):
        try:
            yield number, line_type.model_validate_json(text)
        except ValidationError as error:
            problems.add_invalid(error, line=number)


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
