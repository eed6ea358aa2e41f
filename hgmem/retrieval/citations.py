"""Citations: checks an answer's markers against the evidence and quotes the cited sentences."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.text.segmentation import Span, sentences, words
from hgmem.values.conversations import MessagePlace
from hgmem.values.evidence import BuiltPassage, Citable
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Citation

_MARKER = re.compile(r"\[(\d+)\]")
_SEVERAL = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)+\]")  # [1, 2] is [1][2]
_NUMBER = re.compile(r"\d+")
_DIGITS = 9  # a longer number can't be valid
_OPEN = re.compile(r"[\[\d]")  # after these, removing a marker could join its surroundings to another marker
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,;:!?]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """An answer with valid citations only, and notes on the markers that were removed."""

    text: str
    citations: tuple[Citation, ...]
    notes: tuple[str, ...]


def cite(text: str, passages: Sequence[Citable]) -> Cited:
    """Return the text with markers numbered in order of first use, without invalid ones.

    A marker stands for one quote: two claims supported by different sentences of a passage get two markers.
    """
    order: dict[tuple[int, Span], int] = {}
    unknown: list[str] = []

    def renumber(found: re.Match[str]) -> str:
        number = int(found[1]) if len(found[1]) <= _DIGITS else 0
        if not 1 <= number <= len(passages):
            unknown.append(found[1])
            return " " if _OPEN.search(text[: found.start()][-1:]) else ""
        quoted = _quoted(_claim(text, found.start()), passages[number - 1])
        return f"[{order.setdefault((number, quoted), len(order) + 1)}]"

    text = _SEVERAL.sub(lambda found: "".join(f"[{number}]" for number in _NUMBER.findall(found[0])), text)
    renumbered = _MARKER.sub(renumber, text)
    if unknown:
        renumbered = _SPACE_BEFORE.sub("", renumbered)
    return Cited(
        text=renumbered.strip(),
        citations=tuple(_citation(marker, passages[number - 1], span) for (number, span), marker in order.items()),
        notes=tuple(f"marker [{number}] was removed: no evidence has that number" for number in unknown),
    )


def quote(claim: str, text: str) -> Span:
    """Return the span of the chunk's sentence that shares most words with the claim, else of the whole text."""
    return _best(claim, text, [Span(0, len(text))])


def _quoted(claim: str, passage: Citable) -> Span:
    """Return the span to quote, which stays within one message of a conversation."""
    places = [Span(one.start, one.end) for one in _messages(passage) if one.start < one.end]
    return _best(claim, passage.text, places or [Span(0, len(passage.text))])


def _best(claim: str, text: str, parts: Sequence[Span]) -> Span:
    """Return the sentence of all parts that shares most words with the claim, else the first part."""
    wanted = Counter(words(claim))
    best, most = parts[0], 0.0
    for part in parts:
        for span in sentences(text[part.start : part.end]):
            found = Span(part.start + span.start, part.start + span.end)
            sentence_words = Counter(words(text[found.start : found.end]))
            shared = (wanted & sentence_words).total()
            score = 2 * shared / max(1, wanted.total() + sentence_words.total())
            if score > most:
                best, most = found, score
    return best


def _messages(passage: Citable) -> tuple[MessagePlace, ...]:
    return passage.messages if isinstance(passage, Chunk) else ()


def _claim(text: str, at: int) -> str:
    """Return the claim before the marker at `at`, back to the previous marker or the sentence's start."""
    before = _MARKER.sub(lambda found: " " * len(found[0]), text[:at]).rstrip()
    spans = sentences(before)
    return before[spans[-1].start :] if spans else before


def _citation(marker: int, passage: Citable, span: Span) -> Citation:
    return _of_built(marker, passage, span) if isinstance(passage, BuiltPassage) else _of_chunk(marker, passage, span)


def _of_built(marker: int, row: BuiltPassage, span: Span) -> Citation:
    return Citation(
        marker=marker,
        chunk="",
        document=row.document,
        title=row.title or row.kind,
        quote=row.text[span.start : span.end],
        built=row.uid,
        behind=row.chunks,
    )


def _of_chunk(marker: int, chunk: Chunk, span: Span) -> Citation:
    said = next((one for one in chunk.messages if one.start <= span.start and span.end <= one.end), None)
    return Citation(
        marker=marker,
        chunk=chunk.uid,
        document=chunk.document,
        title=chunk.title,
        quote=chunk.text[span.start : span.end],
        start=None if chunk.start is None else chunk.start + span.start,
        end=None if chunk.start is None else chunk.start + span.end,
        source_id=chunk.source_id,
        message=said.id if said else "",
        speaker=said.speaker if said else "",
        time=said.time if said else "",
    )
