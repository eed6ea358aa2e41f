"""What systems are measured on: documents, and questions with their reference answers and evidence.

The readers of this folder return a `DataSet`. Several of them share the lines of our own format, the search for
evidence in documents, and the list of a file's problems.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hgmem.errors import DocumentError, UsageError
from hgmem.sources.json_records import lines_of, text_of
from hgmem.text.segmentation import Span, first_line, storable
from hgmem.values.inputs import Document, Scalar

MOST = 10  # problems that an error lists of a file
_LONGEST = 90  # characters of one
# Kinds of questions that the documents answer in so many words, so that a question without evidence is a mistake.
NEEDING_EVIDENCE = frozenset({"single", "several", "compare", "cause", "knowledge", "identity", "time"})
_VERDICT = re.compile(r"\W*(true|false)\b", re.IGNORECASE)


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
        for detail in error.errors(include_url=False):
            field = ".".join(str(part) for part in detail["loc"])
            fact = detail["msg"].removeprefix("Value error, ")
            self.add(fact[:1].lower() + fact[1:], line=line, field=field)

    def check(self) -> None:
        """Raise `DocumentError` with up to ten problems if there are any."""
        if not self._lines:
            return
        more = len(self._lines) - MOST
        listed = [*self._lines[:MOST], *([f"{more} more"] if more > 0 else [])]
        raise DocumentError(f"{str(self.path)!r}: " + ";\n".join(listed))


def _sound(text: str) -> str:
    if not storable(text):
        raise ValueError("it has a null character or an unpaired surrogate")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank: fill it in")
    return _sound(text)


Text = Annotated[str, AfterValidator(_sound)]
Filled = Annotated[str, AfterValidator(_filled)]
Offset = Annotated[int, Field(ge=0)]
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Line(BaseModel):
    """A line of JSON, without fields of other names. No other line of its file has the same id."""

    model_config = _STRICT
    id: Filled


LineT = TypeVar("LineT", bound=Line)


class DocumentLine(Line):
    """A line of `documents.jsonl`."""

    text: Filled
    title: Text = ""
    metadata: dict[str, Scalar] = {}


class MessageLine(Line):
    """A line of `conversations.jsonl`. The first title of a conversation is its title."""

    conversation: Filled
    time: datetime
    speaker: Filled
    text: Filled
    title: Text = ""


class EvidenceLine(BaseModel):
    """A piece of evidence: a quote, a place in a document, a chunk or a message."""

    model_config = _STRICT
    document: Text = ""
    quote: Text = ""
    start: Offset | None = None
    end: Offset | None = None
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

    kind: Filled
    question: Filled
    answer: Filled
    evidence: tuple[EvidenceLine, ...] = ()
    pair: Text = ""
    held_back: bool = False


def read_lines(
    values: Iterable[tuple[int, str | Mapping[str, object]]], line_type: type[LineT], problems: Problems
) -> dict[int, LineT]:
    """Return the valid lines, given as JSON or as values, by number, and note the problems of the others."""
    lines: dict[int, LineT] = {}
    seen: set[tuple[str, str]] = set()
    for number, value in values:
        read = line_type.model_validate_json if isinstance(value, str) else line_type.model_validate
        try:
            line = read(value)  # type: ignore[arg-type]
        except ValidationError as error:
            problems.add_invalid(error, line=number)
            continue
        key = (getattr(line, "conversation", ""), line.id)
        if key in seen:
            problems.add(f"id {line.id!r} is a duplicate: ids must be unique", line=number, field="id")
        seen.add(key)
        lines[number] = line
    return lines


def text_documents(folder: Path) -> dict[str, Document]:
    """Return a document for each text file of a folder, by id, in order of names."""
    found: dict[str, Document] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        if path.stem in found:
            raise UsageError(f"{str(folder)!r} has two files {path.stem!r} with different suffixes: rename one")
        found[path.stem] = text_document(path)
    return found


def text_document(path: Path) -> Document:
    """Return a text file as a document: its id is the name without suffix, its title the first line with text."""
    text = text_of(path)
    if not text.strip():
        raise DocumentError(f"{str(path)!r}: it is empty: remove it, or add its text")
    return Document(id=path.stem, title=first_line(text), source=path.name, text=text)


class UnknownEvidenceError(ValueError):
    """Evidence that a data set does not hold. The message is what a person has to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Evidence to choose from: in documents by id, messages by conversation and id, chunks by the caller's id."""

    documents: Mapping[str, Document]
    messages: Mapping[tuple[str, str], Evidence] = field(default_factory=dict)
    chunks: Mapping[str, Evidence] = field(default_factory=dict)

    def evidence(self, wanted: EvidenceLine) -> Evidence:
        """Return the evidence that a line gives. Raises `UnknownEvidenceError` if the data set does not hold it."""
        if wanted.chunk:
            if wanted.chunk not in self.chunks:
                raise UnknownEvidenceError(f"chunk {_shortened(wanted.chunk)} is not in the graph")
            return self.chunks[wanted.chunk]
        return self._message(wanted) if wanted.message else self._words(wanted)

    def _message(self, wanted: EvidenceLine) -> Evidence:
        conversation = wanted.conversation or self._only({name for name, _ in self.messages}, "conversation")
        found = self.messages.get((conversation, wanted.message))
        if found is None:
            raise UnknownEvidenceError(f"message {_shortened(wanted.message)} is not in {_shortened(conversation)}")
        return found

    def _words(self, wanted: EvidenceLine) -> Evidence:
        name = wanted.document or self._only(set(self.documents), "document")
        if name not in self.documents:
            raise UnknownEvidenceError(f"document {_shortened(name)} does not exist")
        document = self.documents[name]
        return _given_place(document, wanted) if wanted.start is not None else _only_place(document, wanted.quote)

    def _only(self, names: set[str], what: str) -> str:
        if len(names) != 1:
            raise UnknownEvidenceError(f"it names no {what}, and there are {len(names)}")
        return next(iter(names))


def at_place(document: Document, span: Span, *, source: str = "") -> Evidence:
    """Return the words of a document at a place as evidence."""
    return Evidence(
        document=document.id, text=document.text[slice(*span)], start=span.start, end=span.end, source=source
    )


def first_place(document: Document, quote: str) -> Evidence | None:
    """Return the evidence where a quote first stands in a document."""
    return next((at_place(document, span) for span in _places(quote, document)), None)


def _places(quote: str, document: Document) -> list[Span]:
    """Return where a quote stands in a document, any run of blanks and line breaks being equal to any other."""
    words = quote.split()
    pattern = r"\s+".join(map(re.escape, words))
    return [Span(*match.span()) for match in re.finditer(pattern, document.text)] if words else []


def _only_place(document: Document, quote: str) -> Evidence:
    found = _places(quote, document)
    if not found:
        raise UnknownEvidenceError(f"quote {_shortened(quote)} is not in {_shortened(document.id)}")
    if len(found) > 1:
        raise UnknownEvidenceError(f"quote {_shortened(quote)} is {len(found)} times in the document: add start")
    return at_place(document, found[0])


def _given_place(document: Document, wanted: EvidenceLine) -> Evidence:
    start, end = wanted.start or 0, wanted.end or 0
    if wanted.quote:
        return _quote_at(document, wanted, start)
    if end > len(document.text) or not document.text[start:end].strip():
        raise UnknownEvidenceError(f"{_shortened(document.id)} has no words at {start} to {end}")
    return at_place(document, Span(start, end))


def _quote_at(document: Document, wanted: EvidenceLine, start: int) -> Evidence:
    """Return the quote at its place. The offset has to be right: it shows that the text is the one that was read."""
    found = _places(wanted.quote, document)
    span = next((span for span in found if span.start == start and wanted.end in (None, span.end)), None)
    if span is None:
        missing = f"not in {_shortened(document.id)}"
        where = f"at {found[0].start} to {found[0].end}: correct start" if found else missing
        raise UnknownEvidenceError(f"quote {_shortened(wanted.quote)} is {where}")
    return at_place(document, span)


def _shortened(text: str) -> str:
    """Return a text in quotation marks, cut to what a message has room for."""
    return repr(text if len(text) <= 20 else f"{text[:19]}…")


def read_questions(path: Path, sources: Sources) -> tuple[EvalQuestion, ...]:
    """Return the questions of a file of our own format, their evidence as words of the documents.

    Raises `DocumentError`.
    """
    problems = Problems(path)
    lines = read_lines(lines_of(path), QuestionLine, problems)
    for number, line in lines.items():
        if not line.evidence and line.kind in NEEDING_EVIDENCE:
            problems.add(f"a question of kind {line.kind!r} needs evidence", line=number, field="evidence")
    if not lines:
        problems.add("it has no valid question")
    return with_evidence(lines, sources, problems)


def with_evidence(
    lines: Mapping[int, QuestionLine], sources: Sources, problems: Problems, *, field: str = "evidence.{}"
) -> tuple[EvalQuestion, ...]:
    """Return the questions of lines by number, whose evidence is in the `field` of this name.

    Raises `DocumentError` with all problems.
    """
    questions = {}
    for number, line in lines.items():
        evidence = []
        for at, wanted in enumerate(line.evidence):
            try:
                evidence.append(sources.evidence(wanted))
            except UnknownEvidenceError as error:
                problems.add(str(error), line=number, field=field.format(at))
        fields = line.model_dump(exclude={"evidence"})
        questions[number] = EvalQuestion(**fields, evidence=tuple(evidence))
    check_pairs(questions.items(), problems)
    problems.check()
    return tuple(questions.values())


def check_pairs(questions: Iterable[tuple[int, EvalQuestion]], problems: Problems) -> None:
    """Note the pairs that are not a true and a false claim, each at the line of its first question."""
    pairs: dict[str, list[tuple[int, EvalQuestion]]] = defaultdict(list)
    for number, question in questions:
        if question.pair:
            pairs[question.pair].append((number, question))
    for name, members in pairs.items():
        found = [_VERDICT.match(question.answer) for _, question in members]
        verdicts = sorted(verdict[1].lower() if verdict else "" for verdict in found)
        if verdicts != ["false", "true"]:
            given = ", ".join(verdicts) if all(verdicts) else "another answer"
            problems.add(
                f"pair {name!r} is not one true and one false claim: {given}", line=members[0][0], field="pair"
            )
