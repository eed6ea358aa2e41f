"""How much of a question's evidence was found: shown to the model word for word, retrieved, or merely rested on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, Literal, TypeAlias

from hgmem.evaluation.formats import Evidence
from hgmem.evaluation.quotes import CorpusChunks, QuotePlace, plain, plain_prompt, restated, spans_of, stands
from hgmem.text.segmentation import Span
from hgmem.values.evidence import BuiltHit
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Answer, Step

Figure: TypeAlias = Literal["answer_prompt", "any_prompt", "retrieved", "rests_on"]
FIGURES: tuple[Figure, ...] = ("answer_prompt", "any_prompt", "retrieved", "rests_on")
BEGINNING = 200  # characters of a statement that a prompt shows at least, where it is shortened
CHARACTERS = (5_000, 10_000, 20_000, 40_000)  # of the curve by characters
CHUNKS = (5, 10, 20, 40)  # of the curve by chunks


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
    def visible_statements(self) -> tuple[Statement, ...]:
        """The statements that stand in the prompt, each as far as it does."""
        found = []
        for statement in self.statements:
            whole = plain(statement.text)
            if whole and whole in self.text:
                found.append(statement)
            elif len(whole) > BEGINNING and whole[:BEGINNING] in self.text:
                found.append(Statement(text=whole[:BEGINNING], chunks=statement.chunks))
        return tuple(found)

    @cached_property
    def questions(self) -> tuple[Span, ...]:
        """Where the prompt repeats what was asked."""
        return tuple(span for text in self.asked for span in spans_of(plain(text), self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A piece of evidence with the places of the corpus where it stands."""

    evidence: Evidence
    places: tuple[QuotePlace, ...]

    @property
    def chunks(self) -> frozenset[str]:
        """The chunks of the evidence itself."""
        return frozenset(chunk for place in self.places if place.own for chunk in place.chunks)


def measure(
    sought: Sequence[Sought],
    *,
    views: Sequence[View],
    answer: View | None,
    corpus: CorpusChunks,
    retrieved: Collection[str],
) -> dict[Figure, dict[str, Any]]:
    """Return what of the evidence was found, by figure, and among how many characters.

    `found` says it of each piece. A question without evidence has None as its `share` and `all`. `retrieved` are the
    chunks (uids) that all steps retrieved.
    """
    uids = set(retrieved)
    in_answer = [answer is not None and _stands(piece, answer, corpus) for piece in sought]
    rested = [answer is not None and _rests(piece, answer) for piece in sought]
    length = len(answer.prompt) if answer else 0
    return {
        "answer_prompt": _figure(in_answer, length),
        "any_prompt": _figure(
            [any(_stands(piece, view, corpus) for view in views) for piece in sought],
            sum(len(view.prompt) for view in views),
        ),
        "retrieved": _figure(
            [any(uids.issuperset(place.chunks) for place in piece.places) for piece in sought],
            sum(corpus.lengths.get(chunk, 0) for chunk in uids),
        ),
        "rests_on": _figure([shown or rests for shown, rests in zip(in_answer, rested, strict=True)], length),
    }


def _figure(found: list[bool], characters: int) -> dict[str, Any]:
    share = fmean(found) if found else None
    return {"share": share, "all": all(found) if found else None, "characters": characters, "found": found}


def curves(sought: Sequence[Sought], ranked: Sequence[Chunk]) -> dict[str, dict[str, float]] | None:
    """Return the share of evidence found among so many `characters` and `chunks` of a ranking, the best chunk first.

    The numbers are written as keys of JSON. A question without evidence has None.
    """
    if not sought:
        return None
    return {
        "characters": {str(most): _recall(sought, list(_within(ranked, most))) for most in CHARACTERS},
        "chunks": {str(most): _recall(sought, [(chunk.uid, chunk.text) for chunk in ranked[:most]]) for most in CHUNKS},
    }


def statements_of(answer: Answer, beneath: Mapping[str, Collection[str]]) -> tuple[Statement, ...]:
    """Return the points of an answer's memory and the built rows it found. `beneath` are the chunks below rows."""
    points = [Statement(text=point.description, chunks=frozenset(point.chunks)) for point in answer.points]
    rows = [Statement(text=hit.text, chunks=frozenset(beneath.get(hit.uid, ()))) for hit in built_of(answer)]
    return (*points, *rows)


def built_of(answer: Answer) -> list[BuiltHit]:
    """Return the built rows that the steps of an answer found."""
    return [hit for step in answer.steps for retrieval in step.retrieved for hit in retrieval.built]


def asked_of(answer: Answer) -> frozenset[str]:
    """Return everything that was asked: the question, and the sub-queries and concerns of all steps."""
    return frozenset({answer.question, *(text for step in answer.steps for text in _asked(step))}) - {""}


def retrieved_of(answer: Answer) -> frozenset[str]:
    """Return the chunks (uids) that the steps of an answer retrieved."""
    return frozenset(hit.uid for step in answer.steps for retrieval in step.retrieved for hit in retrieval.chunks)


def _asked(step: Step) -> Iterator[str]:
    for subquery in (*(retrieval.subquery for retrieval in step.retrieved), *step.planned):
        yield subquery.text
        yield subquery.concern


def _stands(sought: Sought, view: View, corpus: CorpusChunks) -> bool:
    """Whether a prompt shows the words of a piece of evidence."""
    quote = plain(sought.evidence.text)
    if any(not _only_asked(span, sought, view, corpus) for span in spans_of(quote, view.text)):
        return True
    if any(len(place.chunks) > 1 and all(piece in view.text for piece in place.pieces) for place in sought.places):
        return True
    own = sought.chunks
    return any(
        restated(sought.evidence.text, statement.text)
        for statement in view.visible_statements
        if own & statement.chunks
    )


def _only_asked(quote: Span, sought: Sought, view: View, corpus: CorpusChunks) -> bool:
    """Whether words stand within a repeated question, and not within a chunk that is shown."""
    if not _within_any(quote, view.questions):
        return False
    texts = [corpus.texts[place.chunks[0]] for place in sought.places if len(place.chunks) == 1]
    visible = [span for text in texts for span in spans_of(text, view.text)]
    return not any(_within_any(quote, [span]) and not _within_any(span, view.questions) for span in visible)


def _within_any(inner: Span, outer: Sequence[Span]) -> bool:
    return any(span.start <= inner.start and inner.end <= span.end for span in outer)


def _rests(sought: Sought, view: View) -> bool:
    own = sought.chunks
    return any(own & statement.chunks for statement in view.visible_statements)


def _within(ranked: Sequence[Chunk], most: int) -> Iterator[tuple[str, str]]:
    """Yield the first chunks of so many characters, the last one cut and without its uid."""
    for chunk in ranked:
        if len(chunk.text) >= most:
            yield "", chunk.text[:most]
            return
        most -= len(chunk.text)
        yield chunk.uid, chunk.text


def _recall(sought: Sequence[Sought], chunks: Sequence[tuple[str, str]]) -> float:
    uids, texts = {uid for uid, _ in chunks}, [plain(text) for _, text in chunks]
    return sum(_among(piece, uids, texts) for piece in sought) / len(sought)


def _among(sought: Sought, uids: set[str], texts: Sequence[str]) -> bool:
    if any(uids.issuperset(place.chunks) for place in sought.places):
        return True
    quote = plain(sought.evidence.text)
    return any(stands(quote, text) for text in texts)
