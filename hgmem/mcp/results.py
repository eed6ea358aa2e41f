"""What tools return, which is also the schema of their results. Fields with a default are left out where empty.

These classes have no slots: the SDK reads the defaults of fields off the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.values.records import Citation, MemoryPoint, Passage

NAMES = 8  # entities of a point


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A literal quote that the mark [n] of an answer stands for."""

    marker: int
    document: str
    quote: str
    said_by: str = ""
    withdrawn: bool = False


@dataclass(frozen=True, kw_only=True)
class Investigated:
    """An answer with its quotes, or what there is of it."""

    status: str
    memory: str
    steps: int
    answer: str = ""
    quotes: tuple[Quote, ...] = ()
    contradicted: str = ""
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A passage of a document. `supports` are the points (uids) of a memory that rest on it."""

    document: str
    text: str
    supports: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Passages, the best first."""

    passages: tuple[Text, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A statement of a memory. A lineage tells how it was made, of which others, and from which documents."""

    point: str
    statement: str
    step: int
    entities: tuple[str, ...] = ()
    inferred: bool = False
    made: str = ""
    made_of: tuple[str, ...] = ()
    became: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """A question's memory, with its latest answer."""

    memory: str
    corpus: str
    status: str
    step: int
    question: str = ""
    points: tuple[Point, ...] = ()
    answer: str = ""
    quotes: tuple[Quote, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class Ancestry:
    """A point, then those that it was made of, and the passages behind them."""

    points: tuple[Point, ...]
    passages: tuple[Text, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class MemoryLine:
    """A memory in a list."""

    memory: str
    question: str
    status: str
    steps: int
    since: str


@dataclass(frozen=True, kw_only=True)
class CorpusState:
    """What a corpus holds."""

    corpus: str
    status: str
    counts: dict[str, int]
    titles: tuple[str, ...] = ()
    memories: tuple[MemoryLine, ...] = ()
    builds: tuple[str, ...] = ()
    other_corpora: tuple[str, ...] = ()
    more: str = ""


def quotes(citations: Sequence[Citation]) -> tuple[Quote, ...]:
    """Return citations as the quotes of a result."""
    return tuple(
        Quote(
            marker=one.marker,
            document=one.title,
            quote=" ".join(one.quote.split()),
            said_by=one.attribution,
            withdrawn=one.withdrawn,
        )
        for one in citations
    )


def texts(passages: Sequence[Passage], *, more: str = "") -> Texts:
    """Return passages as a result."""
    found = (
        Text(
            document=one.chunk.title or one.source,
            text=one.chunk.text,
            supports=tuple(point.uid for point in one.points),
        )
        for one in passages
    )
    return Texts(passages=tuple(found), more=more)


def point_of(point: MemoryPoint, **more: Any) -> Point:
    """Return a memory point as a result."""
    return Point(
        point=point.uid,
        statement=point.description,
        step=point.born,
        entities=tuple(entity.name for entity in point.entities[:NAMES]),
        inferred=point.inferred,
        **more,
    )


def without_empty(value: Any) -> Any:
    """Return plain data without fields that are empty or false."""
    if isinstance(value, dict):
        return {name: without_empty(one) for name, one in value.items() if one is not False and one not in ("", [])}
    return [without_empty(one) for one in value] if isinstance(value, list) else value
