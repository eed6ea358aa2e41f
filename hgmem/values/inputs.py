"""Input values: questions with their filters, documents to index, and pre-built graphs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.errors import UsageError
from hgmem.values.conversations import MessagePlace

Scalar: TypeAlias = str | int | float | bool
Filters: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, either new or about a memory (uid) to continue.

    Without a text, the memory's latest question is resumed. `at_step` answers from memory as of the end of that step,
    without a new step. `filters` select documents (accepted texts by name). Without them, a continued memory keeps its
    own. `steps` is the most new steps that the caller asked for, if any. `answer=False` builds the memory only. With
    `answers`, a memory that has another number of answers is not continued. `notes` are said with every answer. With
    `theme` false, the text says nothing to look for, as where all documents are summarised.
    """

    text: str = ""
    memory: str | None = None
    at_step: int | None = None
    filters: Mapping[str, tuple[str, ...]] | None = None
    steps: int | None = None
    answer: bool = True
    answers: int | None = None
    notes: tuple[str, ...] = ()
    theme: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeatable:
    """What keeps a question from being answered twice that may be sent twice.

    A new memory gets the uid `memory`, if that is given. A continued one is refused unless it has so many `answers`.
    """

    memory: str = ""
    answers: int | None = None


ONCE = Repeatable()  # a question that nobody sends twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text to index. Its `id`, by default its `source`, identifies the document across runs.

    `messages` are the places of a conversation's messages in the text, in order. Its chunks end at messages.
    """

    text: str
    id: str = ""
    title: str = ""
    source: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    messages: tuple[MessagePlace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChunk:
    """A chunk of a pre-built graph. `id` is the caller's, `document` the `Document.id` that it belongs to."""

    id: str
    document: str
    text: str
    start: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenEntity:
    """An entity of a pre-built graph. `chunks` are the `GivenChunk.id` that mention it."""

    name: str
    type: str = ""
    description: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRelation:
    """An undirected relation of a pre-built graph, between two entity names."""

    source: str
    target: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A pre-built graph, added without extraction."""

    documents: tuple[Document, ...] = ()
    chunks: tuple[GivenChunk, ...] = ()
    entities: tuple[GivenEntity, ...] = ()
    relations: tuple[GivenRelation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file, folder or record that could not be used, and the reason."""

    path: str
    reason: str


def typed_filters(given: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of filters such as `title=Letters` by name. A repeated name collects alternatives.

    Raises `UsageError` for a text without a name and an equals sign.
    """
    found: dict[str, list[str]] = {}
    for name, value in assignments(
        given, otherwise="invalid --where {!r} (where=): use KEY=VALUE, such as source=report.pdf"
    ):
        found.setdefault(name, []).append(value)
    return found


def assignments(given: Iterable[str], *, otherwise: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of texts such as `title=Letters`.

    Raises `UsageError` with the message `otherwise`, which names the text, for one without a name and an equals sign.
    """
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(otherwise.format(one))
        yield name.strip(), value.strip()
