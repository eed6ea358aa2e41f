"""The tasks of ReMindRAG: title a passage, walk, summarise, judge what was of use, and what comes before a walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Annotated, ClassVar

import numpy as np

from hgmem.models.extractive.entity_recognition import aspects
from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.reply import Leniently, Reply, TextReply, named
from hgmem.retrieval import rendering
from hgmem.systems.remindrag.walk_record import Finding, Option, Seen, Way
from hgmem.text.segmentation import collapse, headings, sentences

_LINES = Leniently(sentences=True)
_NEXT = named("next", "way", "number", "choice", "go_to")
_ENOUGH = named("enough", "sufficient", "is_sufficient")


class TitleReply(TextReply):
    """The title of a passage."""


class SummaryReply(TextReply):
    """What a passage says that bears on a question."""


class PlainReply(TextReply):
    """An answer without a search."""


class MoveReply(Reply):
    """What was found, whether all that is known is enough, and else the number of the way to go, and why."""

    found: str = ""
    enough: Annotated[bool, _ENOUGH] = False
    why: str = ""
    next: Annotated[int | None, _NEXT] = None


class EnoughReply(Reply):
    """Whether what is known is enough to answer."""

    enough: Annotated[bool, _ENOUGH] = False


class NextReply(Reply):
    """The number of the way to go, and why."""

    why: str = ""
    next: Annotated[int | None, _NEXT] = None


class UsefulReply(Reply):
    """The numbers of the ways that led to something of use."""

    useful: Annotated[tuple[int, ...], named("useful", "edges", "ways", "numbers")] = ()


class SearchReply(Reply):
    """Whether a question needs a search."""

    search: bool = True


class SplitReply(Reply):
    """The sub-questions of a question."""

    questions: Annotated[tuple[str, ...], named("questions", "subquestions", "sub_questions"), _LINES] = ()


_PHRASES, _LONGEST = 4, 90  # key phrases of a title, and its characters
_SHORT = 60  # characters of a text that is its own title
_SUMMARY = 6  # sentences of a summary


def title(text: str) -> str:
    """Return the first heading of a passage with its key phrases, else these alone."""
    heading = next((collapse(text[start:end].lstrip("# ")) for start, end in islice(headings(text), 1)), "")
    phrases = ", ".join(key_phrases(text, limit=_PHRASES, repeated=False))
    found = ": ".join(part for part in (heading, phrases) if part) or collapse(text)[:_SHORT]
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST].rsplit(' ', 1)[0]} …"


def uncovered(question: str, texts: Sequence[str], *, names_alone: bool = False) -> list[str]:
    """Return the names and key phrases of a question of which no text has all words. Phrases may be left out."""
    held = [frozenset(stems(text)) for text in texts]
    asked = [aspect for aspect in aspects(question) if aspect.name or not names_alone]
    return [aspect.text for aspect in asked if not any(aspect.stems <= each for each in held)]


def nearest(wanted: str, options: Sequence[tuple[str, float]], vectors: VectorCache) -> int:
    """Return the number of the option (its words, and how near what is there is) that is nearest to what is wanted."""
    near = vectors.of([text for text, _ in options]) @ vectors.of([wanted], kind="query")[0]
    return int(np.argmax(np.maximum(near, [score for _, score in options])))


def near_sentences(question: str, text: str, vectors: VectorCache) -> str:
    """Return the sentences of a passage that are nearest to a question, in their order."""
    found = [collapse(text[start:end]) for start, end in sentences(text)]
    if len(found) <= _SUMMARY:
        return collapse(text)
    near = vectors.of(found) @ vectors.of([question], kind="query")[0]
    return " ".join(found[at] for at in sorted(np.argsort(-near, kind="stable")[:_SUMMARY].tolist()))


PROMPTS = Path(__file__).parent / "prompts"
_PASSAGE = 0.1  # by how much a passage, which says more than a sentence, may be farther from a question
_HINT = 180  # characters of what is said of a way


@dataclass(frozen=True, slots=True, kw_only=True)
class TitlePassage:
    """Ask for the title of a passage (paper, section 3.1)."""

    document: str
    text: str
    name: ClassVar[str] = "anchor_title"
    prompt_file: ClassVar[Path] = PROMPTS / "anchor_title.md"
    reply_type: ClassVar[type[TitleReply]] = TitleReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"document": rendering.text(self.document), "passage": rendering.text(self.text)}

    def extractive(self, vectors: VectorCache) -> TitleReply:
        """Return the first heading and the key phrases of the passage, without a language model."""
        return TitleReply(text=title(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseMove:
    """Ask what the latest places say of the question, whether all is enough, and where to go next.

    `fresh` is what no prompt of this walk has shown, `known` all before it. The prompt has only what was found in that.
    `followed`: it is what strong trails led to.
    """

    question: str
    findings: tuple[Finding, ...]
    fresh: tuple[Seen, ...]
    known: tuple[Seen, ...]
    options: tuple[Option, ...]
    left: int
    followed: bool = False
    history: str = ""
    refused: str = ""
    name: ClassVar[str] = "move"
    prompt_file: ClassVar[Path] = PROMPTS / "move.md"
    reply_type: ClassVar[type[MoveReply]] = MoveReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        titles = [seen.title for seen in self.known if seen.title]
        return {
            "question": rendering.text(self.question),
            "history": self.history,
            "found": rendering.listed(finding.text for finding in self.findings) if self.findings else "",
            "titles": rendering.listed(titles) if titles else "",
            "fresh": _texts(self.fresh) if self.fresh else "",
            "ways": _options(self.options) if self.options else "",
            "left": str(self.left) if self.options else "",
            "refused": self.refused,
        }

    def extractive(self, vectors: VectorCache) -> MoveReply:
        """Return the way nearest to what is not covered yet, or that all is, without a language model.

        What strong trails led to has answered a question like this one. It has to cover the names alone.
        """
        read = [seen for seen in (*self.known, *self.fresh) if seen.title]
        texts = [seen.text for seen in read]
        missing = uncovered(self.question, texts, names_alone=self.followed)
        if not self.options or (read and not missing):
            return MoveReply(enough=not missing)
        wanted = ", ".join(missing) or self.question
        at = nearest(wanted, [_option(one) for one in self.options], vectors)
        return MoveReply(next=at, why=_nearest_to(missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEnough:
    """Ask whether all that is known is enough to answer (paper, section 3.2)."""

    question: str
    known: tuple[Seen, ...]
    history: str = ""
    name: ClassVar[str] = "enough"
    prompt_file: ClassVar[Path] = PROMPTS / "enough.md"
    reply_type: ClassVar[type[EnoughReply]] = EnoughReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "history": self.history, "known": _texts(self.known)}

    def extractive(self, vectors: VectorCache) -> EnoughReply:
        """Return whether passages cover the names and key phrases of the question, without a language model."""
        read = [seen.text for seen in self.known if seen.title]
        return EnoughReply(enough=bool(read) and not uncovered(self.question, read))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseNext:
    """Ask where to go next, from all that is known (paper, section 3.2). `visited` are the nodes in their order."""

    question: str
    known: tuple[Seen, ...]
    visited: tuple[str, ...]
    options: tuple[Option, ...]
    history: str = ""
    refused: str = ""
    name: ClassVar[str] = "next_node"
    prompt_file: ClassVar[Path] = PROMPTS / "next_node.md"
    reply_type: ClassVar[type[NextReply]] = NextReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "history": self.history,
            "known": _texts(self.known),
            "visited": rendering.listed(self.visited),
            "ways": _options(self.options),
            "refused": self.refused,
        }

    def extractive(self, vectors: VectorCache) -> NextReply:
        """Return the option that is nearest to what is not covered, without a language model."""
        missing = uncovered(self.question, [seen.text for seen in self.known if seen.title])
        ways = [at for at, one in enumerate(self.options) if isinstance(one, Way)] or range(len(self.options))
        options = [_option(self.options[at]) for at in ways]  # going back leads to nothing new
        at = ways[nearest(", ".join(missing) or self.question, options, vectors)]
        return NextReply(next=at, why=_nearest_to(missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarisePassage:
    """Ask what a passage says that bears on a question (official code: passages of 350 tokens and more)."""

    question: str
    title: str
    text: str
    name: ClassVar[str] = "passage_summary"
    prompt_file: ClassVar[Path] = PROMPTS / "passage_summary.md"
    reply_type: ClassVar[type[SummaryReply]] = SummaryReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "title": rendering.text(self.title),
            "passage": rendering.text(self.text),
        }

    def extractive(self, vectors: VectorCache) -> SummaryReply:
        """Return the sentences nearest to the question, without a language model."""
        return SummaryReply(text=near_sentences(self.question, self.text, vectors))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUseful:
    """Ask which ways of a walk led to something of use (paper, section 3.3).

    `ways` are told in order. `cited` are the numbers of those whose passage or relation the answer cites.
    """

    question: str
    answer: str
    ways: tuple[str, ...]
    cited: tuple[int, ...]
    name: ClassVar[str] = "useful"
    prompt_file: ClassVar[Path] = PROMPTS / "useful.md"
    reply_type: ClassVar[type[UsefulReply]] = UsefulReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        ways = "\n".join(f"[{number}] {way}" for number, way in enumerate(self.ways))
        return {
            "question": rendering.text(self.question),
            "answer": rendering.text(self.answer),
            "ways": rendering.text(ways),
        }

    def extractive(self, vectors: VectorCache) -> UsefulReply:
        """Return the ways that led to what the answer cites, without a language model."""
        return UsefulReply(useful=self.cited)


def _texts(seen: Sequence[Seen]) -> str:
    """Return texts, passages with their titles, each on lines of its own."""
    parts = [f"{one.title}\n{one.text}" if one.title else f"- {one.text}" for one in seen]
    return rendering.text("\n\n".join(parts)) or rendering.NONE


def _options(options: Sequence[Option]) -> str:
    return rendering.text("\n".join(f"[{number}] {told(one)}" for number, one in enumerate(options)))


def told(option: Option) -> str:
    """Return in words where an option leads."""
    if not isinstance(option, Way):
        return f"back to {option.text}"
    node = option.node
    if option.is_passage:
        return f"read the passage {node.text!r}"
    if node.kind == "Anchor":
        return f"the passage {node.text!r}"
    said = shorten(option.told or node.told, _HINT, placeholder=" …")
    return f"{node.text}: {said}" if said else node.text


def _option(option: Option) -> tuple[str, float]:
    """Return the words of an option, and how near what is there is to the question."""
    if not isinstance(option, Way):
        return option.text, 0.0
    if option.node.kind == "Anchor":
        return option.node.text, option.score + _PASSAGE
    return f"{option.told} {option.node.text}".strip(), option.score


def _nearest_to(missing: Sequence[str]) -> str:
    return f"nearest to {', '.join(missing)}" if missing else "nearest to the question"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedSearch:
    """Ask whether a question needs a search of the documents (official code, `query_main`)."""

    question: str
    history: str
    name: ClassVar[str] = "search_needed"
    prompt_file: ClassVar[Path] = PROMPTS / "search_needed.md"
    reply_type: ClassVar[type[SearchReply]] = SearchReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "history": self.history}

    def extractive(self, vectors: VectorCache) -> SearchReply:
        """Return that it does: nothing is known without a search, where there is no language model."""
        return SearchReply(search=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """Ask for the sub-questions of a question, at most so many.

    Source: paper, section 3.2.
    """

    question: str
    most: int
    history: str
    name: ClassVar[str] = "split_question"
    prompt_file: ClassVar[Path] = PROMPTS / "split_question.md"
    reply_type: ClassVar[type[SplitReply]] = SplitReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "most": str(self.most), "history": self.history}

    def extractive(self, vectors: VectorCache) -> SplitReply:
        """Return the question as it is, without a language model."""
        return SplitReply(questions=(self.question,))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlainly:
    """Ask for an answer from the conversation alone, where no search is needed (official code)."""

    question: str
    history: str
    language: str = ""
    name: ClassVar[str] = "plain_answer"
    prompt_file: ClassVar[Path] = PROMPTS / "plain_answer.md"
    reply_type: ClassVar[type[PlainReply]] = PlainReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "history": self.history,
            "language": rendering.language(self.language),
        }
