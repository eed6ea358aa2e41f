"""What tools return, which is also the schema of their results. Fields with a default are left out where empty.

These classes have no slots: the SDK reads the defaults of fields off the class.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.text.language import counted
from hgmem.values.records import INTERRUPTED, RUNNING, Citation, MemoryPoint, MemorySummary, Passage

NAMES = 8  # entities of a point
SIZE = 12_000  # characters of all passages of a result, unless the first has more
MOST_SKIPPED = 500  # passages before those of a result
UNFINISHED = "unfinished"  # what tools call a question without its answer, whether or not a run is at it


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A literal quote that the mark [n] of an answer stands for."""

    marker: int
    document: str
    quote: str
    said_by: str = ""
    withdrawn: bool = False


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
class Text:
    """A passage of a document, its number there and the document's date.

    `supports` are the points (uids) of a memory that rest on it.
    """

    document: str
    chunk: int
    text: str
    date: str = ""
    supports: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """A question's memory: its latest answer with quotes, what is open, and points that were asked for.

    `earlier` are the questions before, with their steps.
    """

    memory: str
    status: str
    steps: int
    question: str = ""
    earlier: tuple[str, ...] = ()
    answer: str = ""
    quotes: tuple[Quote, ...] = ()
    contradicted: str = ""
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Passages, the best first, and for a lineage the point and those that it was made of."""

    points: tuple[Point, ...] = ()
    passages: tuple[Text, ...] = ()
    more: str = ""


@dataclass(frozen=True, kw_only=True)
class CorpusState:
    """What a corpus holds, of memories those that the caller sees. A memory's line begins with its uid."""

    corpus: str
    status: str
    model: str
    counts: dict[str, int]
    titles: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    other_corpora: tuple[str, ...] = ()
    more: str = ""


def quotes(citations: Sequence[Citation]) -> tuple[Quote, ...]:
    """Return citations as the quotes of a result."""
    return tuple(
        Quote(
            marker=one.marker,
            document=one.title or one.document,
            quote=" ".join(one.quote.split()),
            said_by=one.attribution,
            withdrawn=one.withdrawn,
        )
        for one in citations
    )


def evidence(passages: Sequence[Passage], points: Iterable[Point] = (), *, limit: int, skip: int) -> Evidence:
    """Return passages as a result, after the first `skip`, and points that they are behind."""
    texts: list[Text] = []
    for one in passages[skip : skip + limit]:
        if texts and sum(len(text.text) for text in texts) + len(one.chunk.text) > SIZE:
            break
        supported, chunk = tuple(point.uid for point in one.points), one.chunk
        text = Text(document=title(one), chunk=chunk.position, text=chunk.text, date=chunk.date, supports=supported)
        texts.append(text)
    seen = skip + len(texts)
    on = f"skip={seen} shows more" if seen <= MOST_SKIPPED else "there is more: ask for something narrower"
    more = on if texts and seen < len(passages) else ""
    return Evidence(points=tuple(points), passages=tuple(texts), more=more)


def title(passage: Passage) -> str:
    """Return what a passage's document is called."""
    return passage.chunk.title or passage.source or passage.chunk.document


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


def state(status: str) -> str:
    """Return what tools call the status of a memory."""
    return UNFINISHED if status in (RUNNING, INTERRUPTED) else status


def line(memory: MemorySummary) -> str:
    """Return a line about a memory."""
    steps = counted(memory.steps, "step")
    return f"{memory.uid} {state(memory.status)}, {steps}, {memory.created_at[:16]}: {memory.question}"


def without_empty(value: Any) -> Any:
    """Return plain data without fields that are empty or false."""
    if isinstance(value, dict):
        return {name: without_empty(one) for name, one in value.items() if one is not False and one not in ("", [])}
    return [without_empty(one) for one in value] if isinstance(value, list) else value
