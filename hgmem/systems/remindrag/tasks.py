"""The tasks of ReMindRAG: title a passage, choose a move, summarise, judge what was of use.

Its functions at the end serve the replies of the rule-based model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from hgmem.models.extractive.entity_recognition import aspects
from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.reply import Reply, TextReply, named
from hgmem.retrieval import rendering
from hgmem.systems.remindrag.walk_record import Finding, Option, Seen, Way, in_words
from hgmem.text.segmentation import collapse, headings, sentences

PROMPTS = Path(__file__).parent / "prompts"
_PASSAGE = 0.1  # by how much a passage, which says more than a sentence, may be farther from a question
_PHRASES, _LONGEST = 4, 90  # key phrases of a title, and its characters
_SHORT = 60  # characters of a text that is its own title
_SUMMARY = 6  # sentences of a summary
_NEXT = named("next", "way", "number", "choice", "go_to")
_ENOUGH = named("enough", "sufficient", "is_sufficient")


class TitleReply(TextReply):
    """The title of a passage."""


class SummaryReply(TextReply):
    """What a passage says that bears on a question."""


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
    refused: str = ""
    name: ClassVar[str] = "move"
    prompt_file: ClassVar[Path] = PROMPTS / "move.md"
    reply_type: ClassVar[type[MoveReply]] = MoveReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        titles = [seen.title for seen in self.known if seen.title]
        return {
            "question": rendering.text(self.question),
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
        at = nearest(wanted, [_words_and_score(option) for option in self.options], vectors)
        return MoveReply(next=at, why=_nearest_to(missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEnough:
    """Ask whether all that is known is enough to answer (paper, section 3.2)."""

    question: str
    known: tuple[Seen, ...]
    name: ClassVar[str] = "enough"
    prompt_file: ClassVar[Path] = PROMPTS / "enough.md"
    reply_type: ClassVar[type[EnoughReply]] = EnoughReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "known": _texts(self.known)}

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
    refused: str = ""
    name: ClassVar[str] = "next_node"
    prompt_file: ClassVar[Path] = PROMPTS / "next_node.md"
    reply_type: ClassVar[type[NextReply]] = NextReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "known": _texts(self.known),
            "visited": rendering.listed(self.visited),
            "ways": _options(self.options),
            "refused": self.refused,
        }

    def extractive(self, vectors: VectorCache) -> NextReply:
        """Return the option that is nearest to what is not covered, without a language model."""
        missing = uncovered(self.question, [seen.text for seen in self.known if seen.title])
        ways = [at for at, option in enumerate(self.options) if isinstance(option, Way)] or range(len(self.options))
        options = [_words_and_score(self.options[at]) for at in ways]  # going back leads to nothing new
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
    parts = [f"{each.title}\n{each.text}" if each.title else f"- {each.text}" for each in seen]
    return rendering.text("\n\n".join(parts)) or rendering.NONE


def _options(options: Sequence[Option]) -> str:
    return rendering.text("\n".join(f"[{number}] {in_words(option)}" for number, option in enumerate(options)))


def _words_and_score(option: Option) -> tuple[str, float]:
    """Return the words of an option, and how near what is there is to the question."""
    if not isinstance(option, Way):
        return option.text, 0.0
    if option.node.kind == "Anchor":
        return option.node.text, option.score + _PASSAGE
    return f"{option.sentence} {option.node.text}".strip(), option.score


def _nearest_to(missing: Sequence[str]) -> str:
    return f"nearest to {', '.join(missing)}" if missing else "nearest to the question"


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
