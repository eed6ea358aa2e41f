"""The values that callers bring: documents to index, and graphs that are ready-made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool
Filters: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: anew, or (`memory`, a uid) of a memory that goes on.

    Without a text, that memory's last question goes on. `at_step` asks for an answer from memory as it stood at the
    end of that step, without any new one. `filters` choose the documents that count (texts by name); without them, a
    memory that goes on keeps its own. `answer=False` wants the memory alone.
    """

    text: str = ""
    memory: str | None = None
    at_step: int | None = None
    filters: Mapping[str, tuple[str, ...]] | None = None
    answer: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text to index. `id` is what makes it the same document next time; without one, `source`."""

    text: str
    id: str = ""
    title: str = ""
    source: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChunk:
    """A chunk that somebody cut already; `id` is theirs, `document` the `Document.id` that it is from."""

    id: str
    document: str
    text: str
    start: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenEntity:
    """An entity that somebody brings; `chunks` are the `GivenChunk.id` that mention it."""

    name: str
    type: str = ""
    description: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRelation:
    """An undirected relation that somebody brings, between two entity names."""

    source: str
    target: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A graph brought ready-made: nothing of it is extracted."""

    documents: tuple[Document, ...] = ()
    chunks: tuple[GivenChunk, ...] = ()
    entities: tuple[GivenEntity, ...] = ()
    relations: tuple[GivenRelation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file, a folder or a record of a file that could not be used, and why."""

    path: str
    reason: str
