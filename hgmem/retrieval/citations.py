"""Citations: rows of a build that an answer may cite, and checks of its markers, with the sentences that they quote."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.built import nearest_beneath
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.text.segmentation import Span, sentences, words
from hgmem.values.evidence import BuiltPassage, Citable
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Citation

BEHIND = 3  # chunks that stand behind a cited row
MARKER = re.compile(r"\[(\d+)\]")
_SEVERAL = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)+\]")  # [1, 2] is [1][2]
_NUMBER = re.compile(r"\d+")
_DIGITS = 9  # a longer number can't be valid
_OPEN = re.compile(r"[\[\d]")  # after these, removing a marker could join its surroundings to another marker
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,;:!?]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """An answer with valid citations only, and notes on the markers that were removed."""

    text: str
    citations: tuple[Citation, ...] = ()
    notes: tuple[str, ...] = ()


def built_passages(
    services: Services, rows: Sequence[Mapping[str, Any]], *, query: Vectors, titled: str = ""
) -> tuple[BuiltPassage, ...]:
    """Return rows, as searches return them, as passages with the chunks behind them that are nearest to a unit vector.

    `titled` names the property that is their title. Without it, a passage is shown with its kind.
    """
    uids = [row["uid"] for row in rows]
    behind = nearest_beneath(services.database, corpus=services.corpus, uids=uids, query=query, k=BEHIND)
    return tuple(
        BuiltPassage(
            uid=row["uid"],
            kind=row["kind"],
            text=row["text"],
            title=str(row.get(titled, "")) if titled else "",
            document=row["document"],
            chunks=tuple(behind.get(row["uid"], ())),
        )
        for row in rows
    )


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
    renumbered = MARKER.sub(renumber, text)
    if unknown:
        renumbered = _SPACE_BEFORE.sub("", renumbered)
    return Cited(
        text=renumbered.strip(),
        citations=tuple(_citation(marker, passages[number - 1], span) for (number, span), marker in order.items()),
        notes=tuple(f"marker [{number}] was removed: no evidence has that number" for number in unknown),
    )


def _quoted(claim: str, passage: Citable) -> Span:
    """Return the span of the sentence that shares most words with the claim, else of the whole text.

    In a conversation it stays within one message, else it is the first one.
    """
    text, messages = passage.text, passage.messages if isinstance(passage, Chunk) else ()
    places = [Span(message.start, message.end) for message in messages if message.start < message.end]
    parts = places or [Span(0, len(text))]
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


def _claim(text: str, at: int) -> str:
    """Return the claim before the marker at `at`, back to the previous marker or the sentence's start."""
    before = MARKER.sub(lambda found: " " * len(found[0]), text[:at]).rstrip()
    spans = sentences(before)
    return before[spans[-1].start :] if spans else before


def _citation(marker: int, passage: Citable, span: Span) -> Citation:
    quote = passage.text[span.start : span.end]
    if isinstance(passage, BuiltPassage):
        return Citation(
            marker=marker,
            chunk="",
            document=passage.document,
            title=passage.title or passage.kind,
            quote=quote,
            built=passage.uid,
            behind=passage.chunks,
        )
    around = (message for message in passage.messages if message.start <= span.start and span.end <= message.end)
    message = next(around, None)
    return Citation(
        marker=marker,
        chunk=passage.uid,
        document=passage.document,
        title=passage.title,
        quote=quote,
        start=None if passage.start is None else passage.start + span.start,
        end=None if passage.start is None else passage.start + span.end,
        source_id=passage.source_id,
        message=message.id if message else "",
        speaker=message.speaker if message else "",
        time=message.time if message else "",
    )
