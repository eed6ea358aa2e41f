"""The tasks of ReMindRAG: title a passage, walk, summarise, judge what was of use, and what comes before a walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.systems.remindrag import extractive
from hgmem.systems.remindrag.places import Way
from hgmem.systems.remindrag.replies import EnoughReply, MoveReply, NextReply, SummaryReply, TitleReply, UsefulReply
from hgmem.systems.remindrag.walk import Finding, Option, Seen

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
        return TitleReply(text=extractive.title(self.text))


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
        missing = extractive.uncovered(self.question, texts, names_alone=self.followed)
        if not self.options or (read and not missing):
            return MoveReply(enough=not missing)
        wanted = ", ".join(missing) or self.question
        at = extractive.nearest(wanted, [_option(one) for one in self.options], vectors)
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
        return EnoughReply(enough=bool(read) and not extractive.uncovered(self.question, read))


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
        missing = extractive.uncovered(self.question, [seen.text for seen in self.known if seen.title])
        ways = [at for at, one in enumerate(self.options) if isinstance(one, Way)] or range(len(self.options))
        options = [_option(self.options[at]) for at in ways]  # going back leads to nothing new
        at = ways[extractive.nearest(", ".join(missing) or self.question, options, vectors)]
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
        return SummaryReply(text=extractive.near_sentences(self.question, self.text, vectors))


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
