"""What systems are measured on: documents, and questions with their reference answers and evidence.

The readers of this folder return a `DataSet`. Several of them share the lines of our own format, the search for
evidence in documents, and the list of a file's problems.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hgmem.client.intake import loaded
from hgmem.errors import DocumentError, UsageError
from hgmem.settings import load as load_settings
from hgmem.sources.json_records import lines_of
from hgmem.text.identity import uid
from hgmem.text.segmentation import Span, first_line, storable
from hgmem.values.inputs import Document, Skipped

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

    `graph` is an archive of hgmem or a LightRAG directory, to be imported in place of indexing the documents. `corpus`
    names one that has them already.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[EvalQuestion, ...]
    graph: Path | None = None
    corpus: str = ""


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
Found = TypeVar("Found")


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
    seen: set[str] = set()
    for number, value in values:
        read = line_type.model_validate_json if isinstance(value, str) else line_type.model_validate
        try:
            line = read(value)  # type: ignore[arg-type]
        except ValidationError as error:
            problems.add_invalid(error, line=number)
            continue
        if line.id in seen:
            problems.add(f"id {line.id!r} is a duplicate: ids must be unique", line=number, field="id")
        seen.add(line.id)
        lines[number] = line
    return lines


def read_documents(path: Path) -> dict[str, Document]:
    """Return the documents of a file or folder that `hgmem index` takes, by id, in order of names.

    The id of a file is its path in the folder without suffix, and its title its first line, unless it has another.
    Raises `DocumentError` for a file that can't be used.
    """
    root = path if path.is_dir() else path.parent
    found: dict[str, Document] = {}
    for item in loaded(path, load_settings()):
        if isinstance(item, Skipped):
            raise DocumentError(f"{item.path!r}: {item.reason}: remove it, or index the rest and name the corpus")
        file = Path(os.path.relpath(item.source, root))
        name = item.id.replace(item.source, file.with_suffix("").as_posix())
        if name in found:
            raise UsageError(f"{str(path)!r} has two documents {name!r}: rename one")
        nameless = item.title == file.stem or item.title.startswith(f"{file.stem} #")
        title = first_line(item.text) if nameless else item.title
        text = item.text.replace("\r\n", "\n").replace("\r", "\n")
        found[name] = replace(item, id=name, title=title, source=file.as_posix(), text=text)
    return found


class UnknownEvidenceError(ValueError):
    """Evidence that a data set does not hold. The message is what a person has to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Evidence to choose from: in documents with their messages, and chunks by the caller's id.

    Documents that stand in a `corpus` have their uids as ids.
    """

    documents: Sequence[Document]
    chunks: Mapping[str, Evidence] = field(default_factory=dict)
    corpus: str = ""

    def evidence(self, wanted: EvidenceLine) -> Evidence:
        """Return the evidence that a line gives. Raises `UnknownEvidenceError` if the data set does not hold it."""
        if wanted.chunk:
            if wanted.chunk not in self.chunks:
                raise UnknownEvidenceError(f"chunk {_shortened(wanted.chunk)} is not in the graph")
            return self.chunks[wanted.chunk]
        return self._message(wanted) if wanted.message else self._words(wanted)

    def _message(self, wanted: EvidenceLine) -> Evidence:
        talks = self._named(wanted.conversation, "conversation")
        places = [(talk, message) for talk in talks for message in talk.messages if message.id == wanted.message]
        talk, found = _only(places, f"message {_shortened(wanted.message)}", talks)
        return at_place(talk, Span(found.start, found.end), source=found.id)

    def _words(self, wanted: EvidenceLine) -> Evidence:
        documents = self._named(wanted.document, "document")
        if wanted.start is not None:
            return _given_place(_only(documents, "text at start", documents), wanted)
        places = [at_place(document, span) for document in documents for span in _places(wanted.quote, document)]
        return _only(places, f"quote {_shortened(wanted.quote)}", documents)

    def _named(self, name: str, what: str) -> list[Document]:
        """Return the document with this id, else those with the name as title or file name, all without a name."""
        ids = {name, uid(self.corpus, "document", name)}
        found = [one for one in self.documents if not name or one.id in ids]
        found = found or [one for one in self.documents if name in (one.title, Path(one.source).stem)]
        if not found:
            raise UnknownEvidenceError(f"{what} {_shortened(name)} does not exist")
        return found


def _only(places: Sequence[Found], what: str, documents: Sequence[Document]) -> Found:
    """Return the only place in documents where something stands."""
    where, remedy = f"the {len(documents)} documents", "name its document"
    if len(documents) == 1:
        where, remedy = _shortened(Path(documents[0].source).stem or documents[0].id), "add start"
    if len(places) != 1:
        number = f"{len(places)} times in {where}: {remedy}" if places else f"not in {where}"
        raise UnknownEvidenceError(f"{what} is {number}")
    return places[0]


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
