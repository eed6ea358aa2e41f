"""The tasks of ReMindRAG: title a passage, choose a move, summarise, judge what was of use.

Its functions at the end serve the replies of the rule-based model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, TypeAlias

import numpy as np

from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.extractive.entity_recognition import aspects
from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.prompts import PromptTask, flag
from hgmem.models.reply import Leniently, Reply, TextReply, named
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Text
from hgmem.systems.remindrag.findings import FINDING, Seen
from hgmem.systems.remindrag.walk_record import Option, Way, in_words
from hgmem.text.segmentation import collapse, headings, sentences

_PASSAGE = 0.1  # by how much a passage, which says more than a sentence, may be farther from a question
_PHRASES, _LONGEST = 4, 90  # key phrases of a title, and its characters
_SHORT = 60  # characters of a text that is its own title
_SUMMARY = 6  # sentences of a summary
_NEXT = named("next", "way", "number", "choice", "go_to")
_ENOUGH = named("enough", "sufficient", "is_sufficient")


class MoveReply(Reply):
    """What was found, whether all that is known is enough, and else the number of the way to go, and why.

    `missing` are parts of the question that are still to be found, `also` are further ways, and `search` are words to
    search the text for.
    """

    found: str = ""
    missing: Annotated[tuple[str, ...], named("missing", "to_find", "open"), Leniently(sentences=True)] = ()
    enough: Annotated[bool, _ENOUGH] = False
    why: str = ""
    next: Annotated[int | None, _NEXT] = None
    also: tuple[int, ...] = ()
    search: str = ""


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


def _texts(seen: Sequence[Seen], *, numbered: bool = False) -> str:
    """Return texts, passages with their titles, each on lines of its own, with numbers from 1 if they are wanted."""
    told = [f"{each.title}\n{each.text}" if each.title else each.text for each in seen]
    marks = [f"[{at}] " if numbered else "" if each.title else "- " for at, each in enumerate(seen, start=1)]
    parts = [mark + text for mark, text in zip(marks, told, strict=True)]
    return rendering.text("\n\n".join(parts)) or rendering.NONE


def _sourced(finding: Seen) -> str:
    return f"{finding.text} ({finding.title})" if finding.title else finding.text


def _numbered(texts: Iterable[str]) -> str:
    return rendering.text("\n".join(f"[{number}] {text}" for number, text in enumerate(texts)))


Known: TypeAlias = Annotated[tuple[Seen, ...], _texts]
Options: TypeAlias = Annotated[tuple[Option, ...], lambda options: _numbered(map(in_words, options)), "ways"]


@dataclass(frozen=True, kw_only=True)
class TitlePassage(PromptTask):
    """Ask for the title of a passage (paper, appendix A.1: anchor nodes). `heading` tells of its document."""

    heading: Text
    text: Annotated[str, rendering.text, "passage"]
    name = "anchor_title"
    reply_type = TextReply

    def extractive(self, vectors: CheckedEmbedder) -> TextReply:
        """Return the first heading and the key phrases of the passage, without a language model."""
        return TextReply(text=title(self.text))


@dataclass(frozen=True, kw_only=True)
class ChooseMove(PromptTask):
    """Ask what the latest places say of the question, whether all is enough, and where to go next.

    `fresh` is what no prompt of this walk has shown, `known` all before it. The prompt has only what was found in that.
    `missing` is what the reply before had still to find. `followed`: the new texts are what strong trails led to.
    `more` is how many further moves the reply may name, and with `search` it may name words to search for.
    """

    question: Text
    findings: tuple[Seen, ...]
    fresh: tuple[Seen, ...]
    known: tuple[Seen, ...]
    options: Options
    left: int
    missing: Annotated[tuple[str, ...], lambda parts: rendering.listed(parts) if parts else ""] = ()
    followed: bool = False
    more: int = 0
    search: bool = False
    refused: Annotated[str, str] = ""
    name = "move"
    reply_type = MoveReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            **super().fields(),
            "found": rendering.listed(map(_sourced, self.findings)) if self.findings else "",
            "fresh": _texts(self.fresh, numbered=True) if self.fresh else "",
            "left": str(self.left) if self.options else "",
            "also": str(self.more) if self.options and self.more else "",
            "search": flag(self.search),
            "kept": f"{FINDING:,}",
            "form": self._form,
        }

    @property
    def _form(self) -> str:
        wanted = {'"missing": ["…"]': bool(self.options) or self.search}
        wanted |= {'"why": "…"': bool(self.options) or self.search, '"next": N': bool(self.options)}
        wanted |= {'"also": [N]': bool(self.options) and self.more > 0, '"search": "…"': self.search}
        return (
            "{" + ", ".join(['"found": "…"', '"enough": false', *(one for one, asked in wanted.items() if asked)]) + "}"
        )

    def extractive(self, vectors: CheckedEmbedder) -> MoveReply:
        """Return the ways nearest to what is not covered yet, or that all is, without a language model.

        What strong trails led to has answered a question like this one. It has to cover the names alone.
        """
        read = [seen for seen in (*self.known, *self.fresh) if seen.title]
        texts = [seen.text for seen in read]
        missing = uncovered(self.question, texts, names_alone=self.followed)
        if not self.options or (read and not missing):
            return MoveReply(enough=not missing)
        options = [_words_and_score(option) for option in self.options]
        wanted = [", ".join(missing), *(missing if len(missing) > 1 else ())] if missing else [self.question]
        first, *others = dict.fromkeys(nearest(each, options, vectors) for each in wanted)
        return MoveReply(missing=tuple(missing), next=first, also=tuple(others), why=_nearest_to(missing))


@dataclass(frozen=True, kw_only=True)
class JudgeEnough(PromptTask):
    """Ask whether all that is known is enough to answer (paper, appendix B.3)."""

    question: Text
    known: Known
    name = "enough"
    reply_type = EnoughReply

    def extractive(self, vectors: CheckedEmbedder) -> EnoughReply:
        """Return whether passages cover the names and key phrases of the question, without a language model."""
        read = [seen.text for seen in self.known if seen.title]
        return EnoughReply(enough=bool(read) and not uncovered(self.question, read))


@dataclass(frozen=True, kw_only=True)
class ChooseNext(PromptTask):
    """Ask where to go next, from all that is known (paper, appendix B.3). `visited` are the nodes in their order."""

    question: Text
    known: Known
    visited: Annotated[tuple[str, ...], rendering.listed]
    options: Options
    refused: Annotated[str, str] = ""
    name = "next_node"
    reply_type = NextReply

    def extractive(self, vectors: CheckedEmbedder) -> NextReply:
        """Return the option that is nearest to what is not covered, without a language model."""
        missing = uncovered(self.question, [seen.text for seen in self.known if seen.title])
        ways = [at for at, option in enumerate(self.options) if isinstance(option, Way)] or range(len(self.options))
        options = [_words_and_score(self.options[at]) for at in ways]  # going back leads to nothing new
        at = ways[nearest(", ".join(missing) or self.question, options, vectors)]
        return NextReply(next=at, why=_nearest_to(missing))


@dataclass(frozen=True, kw_only=True)
class SummarisePassage(PromptTask):
    """Ask what a passage says that bears on a question (official code: passages of 350 tokens and more)."""

    question: Text
    title: Text
    text: Annotated[str, rendering.text, "passage"]
    name = "passage_summary"
    reply_type = TextReply

    def extractive(self, vectors: CheckedEmbedder) -> TextReply:
        """Return the sentences nearest to the question, in their order, without a language model."""
        found = [collapse(self.text[start:end]) for start, end in sentences(self.text)]
        if len(found) <= _SUMMARY:
            return TextReply(text=collapse(self.text))
        near = vectors.of(found) @ vectors.of([self.question], kind="query")[0]
        chosen = np.argsort(-near, kind="stable")[:_SUMMARY].tolist()
        return TextReply(text=" ".join(found[at] for at in sorted(chosen)))


@dataclass(frozen=True, kw_only=True)
class JudgeUseful(PromptTask):
    """Ask which ways of a walk led to something of use (paper, section 3.2.1).

    `ways` are told in order, each with what was found and read there. `cited` are the numbers of those whose passage or
    relation the answer cites.
    """

    question: Text
    answer: Text
    ways: Annotated[tuple[Seen, ...], lambda ways: _numbered(f"{way.title}\n{way.text}".strip() for way in ways)]
    cited: tuple[int, ...]
    name = "useful"
    reply_type = UsefulReply

    def extractive(self, vectors: CheckedEmbedder) -> UsefulReply:
        """Return the ways that led to what the answer cites, without a language model."""
        return UsefulReply(useful=self.cited)


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
    first = next((collapse(text[start:end].lstrip("# ")) for start, end in islice(headings(text), 1)), "")
    phrases = ", ".join(key_phrases(text, limit=_PHRASES, repeated=False))
    found = ": ".join(part for part in (first, phrases) if part) or collapse(text)[:_SHORT]
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST].rsplit(' ', 1)[0]} …"


def uncovered(question: str, texts: Sequence[str], *, names_alone: bool = False) -> list[str]:
    """Return the names and key phrases of a question of which no text has all words. Phrases may be left out."""
    held = [frozenset(stems(text)) for text in texts]
    asked = [aspect for aspect in aspects(question) if aspect.name or not names_alone]
    return [aspect.text for aspect in asked if not any(aspect.stems <= each for each in held)]


def nearest(wanted: str, options: Sequence[tuple[str, float]], vectors: CheckedEmbedder) -> int:
    """Return the number of the option (its words, and how near what is there is) that is nearest to what is wanted."""
    near = vectors.of([text for text, _ in options]) @ vectors.of([wanted], kind="query")[0]
    return int(np.argmax(np.maximum(near, [score for _, score in options])))
