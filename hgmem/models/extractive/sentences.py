"""Quotable sentences of chunks and built rows: whole sentences, once each despite overlapping chunks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hgmem.models.extractive.key_phrases import stems
from hgmem.text.segmentation import collapse, sentences
from hgmem.values.evidence import Citable
from hgmem.values.graph_elements import Chunk

_LONGEST = 600
_PIECE = 400
_MOST = 200
_FEWEST_STEMS = 3
_MANY_CAPITALS = 0.7
_ENDED = re.compile(r"[.!?…。！？｡؟۔।॥:;][\"'”’»›)\]}』」）】_*]*$")
_CUT_OFF = re.compile(r"[,;:.!?)\]…。，、；]|[\-–—]+ |[\"'”’] |[^\"“”]*[^\s\"“”(—–-][\"”]")
_BREAKS = ("\n", "; ", ", ", "。", "，", "、", " ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a chunk. `chunk` is the chunk's index, `at` the sentence's index in the chunk.

    `around` holds the stems of the sentence, its two neighbours, and the chunk's title and entities. `said` says that
    it is of a message, and neither a question nor without content.
    """

    chunk: int
    at: int
    text: str
    stems: frozenset[str]
    whole: bool
    around: frozenset[str] = frozenset()
    said: bool = False


def passages(chunks: Sequence[Citable]) -> list[list[Passage]]:
    """Return the passages of each chunk in order. Those that the chunk's edge cuts off have `whole=False`."""
    told = [[(collapse(piece), by) for text, by in _texts(chunk) for piece in _pieces(text)] for chunk in chunks]
    rows = [[text for text, _ in each] for each in told]
    every = [text for row in rows for text in row]
    found = [
        [_passage(chunk, index, at, row=row, every=every) for at in range(len(row))]
        for index, (chunk, row) in enumerate(zip(chunks, rows, strict=True))
    ]
    spoken = [
        [_spoken(one, by) if by else one for one, (_, by) in zip(row, each, strict=True)]
        for row, each in zip(found, told, strict=True)
    ]
    return [_with_surroundings(row, chunk) for row, chunk in zip(spoken, chunks, strict=True)]


def quotable(rows: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the quotable passages, each text once: whole sentences, or all passages if there are none.

    A sentence of few words is left out, but where it is what a message says.
    """
    found: dict[str, Passage] = {}
    for passage in sorted((each for row in rows for each in row), key=lambda each: not each.whole):
        found.setdefault(passage.text.casefold(), passage)
    every = list(found.values())
    plain = [passage for passage in every if not _heading(passage.text)]
    whole = [passage for passage in plain if passage.whole]
    full = [passage for passage in whole if passage.said or len(passage.stems) >= _FEWEST_STEMS]
    return full or whole or plain or every


def _spoken(passage: Passage, speaker: str) -> Passage:
    said = bool(passage.stems) and not passage.text.endswith(("?", "？", "؟"))
    return replace(passage, stems=passage.stems.union(stems(speaker)), said=said)


def _with_surroundings(row: list[Passage], chunk: Citable) -> list[Passage]:
    entities = chunk.entities if isinstance(chunk, Chunk) else ()
    named = frozenset(stem for text in (chunk.title, *(each.name for each in entities)) for stem in stems(text))
    return [
        replace(each, around=named.union(*(near.stems for near in row[max(0, at - 1) : at + 2])))
        for at, each in enumerate(row)
    ]


def _texts(chunk: Citable) -> list[tuple[str, str]]:
    """Return a text, or of a conversation what each message says, with its speaker, whose name counts as a word."""
    if isinstance(chunk, Chunk) and chunk.messages:
        return [(chunk.text[place.start : place.end], place.speaker) for place in chunk.messages]
    return [(chunk.text, "")]


def _pieces(text: str) -> Iterator[str]:
    for span in sentences(text)[:_MOST]:
        piece = text[span.start : span.end]
        if len(piece) <= _LONGEST:
            yield piece
        else:
            yield from _broken(piece)


def _broken(text: str) -> Iterator[str]:
    """Yield pieces of a text without full stops, split at line ends, commas or spaces."""
    start = 0
    for _ in range(_MOST):
        if len(text) - start <= _PIECE:
            break
        window = text[start : start + _PIECE]
        cuts = [at + len(mark) for mark in _BREAKS if (at := window.rfind(mark)) > _PIECE // 4]
        end = start + (cuts[0] if cuts else _PIECE)
        yield text[start:end]
        start = end
    yield text[start : start + _PIECE]


def _passage(chunk: Citable, index: int, at: int, *, row: list[str], every: list[str]) -> Passage:
    text = row[at]
    cut = False
    if at == 0 and not _opens(chunk):
        cut = (text[0].islower() or bool(_CUT_OFF.match(text))) or any(
            len(text) < len(other) and other.endswith(text) for other in every
        )
    if at == len(row) - 1 and not cut and not (isinstance(chunk, Chunk) and chunk.messages):
        cut = not _ENDED.search(text) or any(len(text) < len(other) and other.startswith(text) for other in every)
    return Passage(index, at, text, frozenset(stems(text)), not cut)


def _opens(chunk: Citable) -> bool:
    """Whether the text begins a document, or is whole by itself as a built row or a message is."""
    if not isinstance(chunk, Chunk):
        return True
    return chunk.start == 0 or (chunk.start is None and chunk.position == 0) or bool(chunk.messages)


def _heading(text: str) -> bool:
    """Whether a text is a title or a table of contents: mostly capitalised words, no full sentence."""
    parts = [part for part in text.split() if part[0].isalpha()]
    capitals = sum(part[0].isupper() for part in parts)
    return sum(map(str.islower, text)) * 2 < sum(map(str.isupper, text)) or (
        capitals > _MANY_CAPITALS * len(parts) and len(parts) > 2
    )
