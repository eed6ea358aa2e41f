"""How much of a question's evidence was found: shown to the model word for word, retrieved, or merely rested on."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from hgmem.evaluation.formats import Evidence
from hgmem.evaluation.shelf import Place, Shelf
from hgmem.evaluation.wording import places, plain, plain_prompt, restated
from hgmem.text.segmentation import Span
from hgmem.values.evidence import BuiltHit
from hgmem.values.records import Answer, Step

Figure: TypeAlias = Literal["answer_prompt", "any_prompt", "retrieved", "rests_on"]
FIGURES: tuple[Figure, ...] = ("answer_prompt", "any_prompt", "retrieved", "rests_on")
BEGINNING = 200  # characters of a statement that a prompt shows at least, where it is shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A rewritten text of the record, such as a memory point or a built row, and the chunks that it rests on."""

    text: str
    chunks: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class View:
    """What one prompt showed: its text, the statements in it, and the questions in it, which are no evidence."""

    prompt: str
    asked: Collection[str] = ()
    statements: Sequence[Statement] = ()

    @cached_property
    def text(self) -> str:
        """The plain text of the prompt."""
        return plain_prompt(self.prompt)

    @cached_property
    def shown(self) -> tuple[Statement, ...]:
        """The statements that stand in the prompt, each as far as it does."""
        return tuple(_shown(self.statements, self.text))

    @cached_property
    def questions(self) -> tuple[Span, ...]:
        """Where the prompt repeats what was asked."""
        return tuple(span for text in self.asked for span in places(plain(text), self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A piece of evidence with the places of the corpus where it stands."""

    evidence: Evidence
    places: tuple[Place, ...]

    @property
    def chunks(self) -> frozenset[str]:
        """The chunks of the evidence itself."""
        return frozenset(chunk for place in self.places if place.own for chunk in place.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """For each piece of evidence whether it was found, by figure, and the characters among which it was."""

    pieces: Mapping[Figure, tuple[bool, ...]]
    characters: Mapping[Figure, int]
    unplaced: int = 0

    def share(self, figure: Figure) -> float | None:
        """Return the share of evidence found, or None for a question without any."""
        found = self.pieces[figure]
        return sum(found) / len(found) if found else None

    def all(self, figure: Figure) -> bool | None:
        """Whether all evidence was found, or None for a question without any."""
        found = self.pieces[figure]
        return all(found) if found else None


def measure(
    sought: Sequence[Sought], *, views: Sequence[View], answer: View | None, held: Shelf, read: list[str]
) -> Found:
    """Return what of the evidence was found. `read` are the chunks (uids) that all steps retrieved."""
    final = [answer] if answer else []
    pieces: dict[Figure, tuple[bool, ...]] = {
        "answer_prompt": tuple(any(_stands(one, view, held) for view in final) for one in sought),
        "any_prompt": tuple(any(_stands(one, view, held) for view in views) for one in sought),
        "retrieved": tuple(any(set(read).issuperset(place.chunks) for place in one.places) for one in sought),
    }
    rested = tuple(any(_rests(one, view) for view in final) for one in sought)
    pieces["rests_on"] = tuple(one or other for one, other in zip(pieces["answer_prompt"], rested, strict=True))
    shown = len(answer.prompt) if answer else 0
    characters: dict[Figure, int] = {
        "answer_prompt": shown,
        "any_prompt": sum(len(view.prompt) for view in views),
        "retrieved": sum(held.lengths.get(chunk, 0) for chunk in set(read)),
        "rests_on": shown,
    }
    return Found(pieces=pieces, characters=characters, unplaced=sum(not one.places for one in sought))


def statements_of(answer: Answer, beneath: Mapping[str, Collection[str]]) -> tuple[Statement, ...]:
    """Return the points of an answer's memory and the built rows it found. `beneath` are the chunks below rows."""
    points = [Statement(text=point.description, chunks=frozenset(point.chunks)) for point in answer.points]
    rows = [Statement(text=hit.text, chunks=frozenset(beneath.get(hit.uid, ()))) for hit in built_of(answer)]
    return (*points, *rows)


def built_of(answer: Answer) -> list[BuiltHit]:
    """Return the built rows that the steps of an answer found."""
    return [hit for step in answer.steps for one in step.retrieved for hit in one.built]


def asked_of(answer: Answer) -> frozenset[str]:
    """Return everything that was asked: the question, and the sub-queries and concerns of all steps."""
    return frozenset({answer.question, *(text for step in answer.steps for text in _asked(step))}) - {""}


def read_of(answer: Answer) -> list[str]:
    """Return the chunks (uids) that the steps of an answer retrieved, each once, in order."""
    return list(dict.fromkeys(hit.uid for step in answer.steps for one in step.retrieved for hit in one.chunks))


def _asked(step: Step) -> Iterator[str]:
    for subquery in (*(one.subquery for one in step.retrieved), *step.planned):
        yield subquery.text
        yield subquery.concern


def _shown(statements: Iterable[Statement], text: str) -> Iterator[Statement]:
    for statement in statements:
        whole = plain(statement.text)
        if whole and whole in text:
            yield statement
        elif len(whole) > BEGINNING and whole[:BEGINNING] in text:
            yield Statement(text=whole[:BEGINNING], chunks=statement.chunks)


def _stands(sought: Sought, view: View, held: Shelf) -> bool:
    """Whether a prompt shows the words of a piece of evidence."""
    quote = plain(sought.evidence.text)
    if any(not _only_asked(span, sought, view, held) for span in places(quote, view.text)):
        return True
    if any(len(place.chunks) > 1 and all(piece in view.text for piece in place.pieces) for place in sought.places):
        return True
    own = sought.chunks
    return any(restated(sought.evidence.text, one.text) for one in view.shown if own & one.chunks)


def _only_asked(span: Span, sought: Sought, view: View, held: Shelf) -> bool:
    """Whether words stand within a repeated question, and not within a chunk that is shown."""
    if not any(_within(span, asked) for asked in view.questions):
        return False
    texts = [held.texts[place.chunks[0]] for place in sought.places if len(place.chunks) == 1]
    shown = [one for text in texts for one in places(text, view.text)]
    return not any(_within(span, one) and not any(_within(one, asked) for asked in view.questions) for one in shown)


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _rests(sought: Sought, view: View) -> bool:
    own = sought.chunks
    return any(own & statement.chunks for statement in view.shown)
