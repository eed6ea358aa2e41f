"""The answer: asked for once, its markers checked against the evidence, its quotes cut from the chunks."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hgmem import rendering
from hgmem.model import Chunk, Citation
from hgmem.rendering import Shown
from hgmem.reply import TextReply
from hgmem.text import Span, sentences, words

_MARKER = re.compile(r"\[(\d+)\]")
_SEVERAL = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)+\]")  # [1, 2] is [1][2]
_NUMBER = re.compile(r"\d+")
_DIGITS = 9  # a longer number names no chunk
_OPEN = re.compile(r"[\[\d]")  # after these, nothing in a marker's place could make a marker of what is around it
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,;:!?]|$)")


class AnswerReply(TextReply):
    """The answer's text, with markers `[n]` that name evidence chunks by number, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """Ask for the answer; chunk n of `chunks`, from 1, is cited as `[n]`. `memory` may hold no point."""

    question: str
    memory: Shown
    chunks: tuple[Chunk, ...]
    form: str = ""
    language: str = ""
    name: ClassVar[str] = "answer"
    reply_type: ClassVar[type[AnswerReply]] = AnswerReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory, numbered=False),
            "chunks": rendering.chunks(self.chunks, start=1),
            "form": self.form or "as long as the question needs, in plain prose",
            "language": rendering.language(self.language),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """An answer whose every marker stands for a citation, and what was removed from it."""

    text: str
    citations: tuple[Citation, ...]
    notes: tuple[str, ...]


def cite(text: str, chunks: Sequence[Chunk]) -> Cited:
    """Return the text with markers numbered in order of first use; a marker that names no chunk is removed.

    A marker stands for one quote: two claims that rest on different sentences of a chunk get two.
    """
    order: dict[tuple[int, Span], int] = {}
    unknown: list[str] = []

    def renumber(found: re.Match[str]) -> str:
        number = int(found[1]) if len(found[1]) <= _DIGITS else 0
        if not 1 <= number <= len(chunks):
            unknown.append(found[1])
            return " " if _OPEN.search(text[: found.start()][-1:]) else ""
        quoted = quote(_claim(text, found.start()), chunks[number - 1].text)
        return f"[{order.setdefault((number, quoted), len(order) + 1)}]"

    text = _SEVERAL.sub(lambda found: "".join(f"[{number}]" for number in _NUMBER.findall(found[0])), text)
    renumbered = _MARKER.sub(renumber, text)
    if unknown:
        renumbered = _SPACE_BEFORE.sub("", renumbered)
    return Cited(
        text=renumbered.strip(),
        citations=tuple(_citation(marker, chunks[number - 1], span) for (number, span), marker in order.items()),
        notes=tuple(f"marker [{number}] was removed: there is no such evidence" for number in unknown),
    )


def quote(claim: str, text: str) -> Span:
    """Return where in a chunk's text the sentence lies that shares most words with the claim; whole text if none."""
    wanted = Counter(words(claim))
    best, most = Span(0, len(text)), 0.0
    for span in sentences(text):
        said = Counter(words(text[span.start : span.end]))
        shared = (wanted & said).total()
        score = 2 * shared / max(1, wanted.total() + said.total())
        if score > most:
            best, most = span, score
    return best


def _claim(text: str, at: int) -> str:
    """Return what the answer says before the marker at `at`: from the marker, or the sentence, before it."""
    before = _MARKER.sub(lambda found: " " * len(found[0]), text[:at]).rstrip()
    spans = sentences(before)
    return before[spans[-1].start :] if spans else before


def _citation(marker: int, chunk: Chunk, span: Span) -> Citation:
    return Citation(
        marker=marker,
        chunk=chunk.uid,
        document=chunk.document,
        title=chunk.title,
        quote=chunk.text[span.start : span.end],
        start=None if chunk.start is None else chunk.start + span.start,
        end=None if chunk.start is None else chunk.start + span.end,
        source_id=chunk.source_id,
    )
