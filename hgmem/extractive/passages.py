"""The sentences of chunks, as they may be quoted: whole, and each once although chunks overlap."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hgmem.extractive.phrases import stems
from hgmem.model import Chunk
from hgmem.text import collapse, sentences

_LONGEST = 600
_PIECE = 400
_MOST = 200
_FEWEST_STEMS = 3
_ENDED = re.compile(r"[.!?…。！？｡؟۔।॥:;][\"'”’»›)\]}』」）】_*]*$")
_BREAKS = ("\n", "; ", ", ", "。", "，", "、", " ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a chunk: `chunk` is the chunk's index, `at` its own among the chunk's sentences."""

    chunk: int
    at: int
    text: str
    stems: frozenset[str]
    whole: bool


def passages(chunks: Sequence[Chunk]) -> list[list[Passage]]:
    """Return the passages of each chunk in order; those cut off by the chunk's edge have `whole` false."""
    rows = [[collapse(piece) for piece in _pieces(chunk.text)] for chunk in chunks]
    edges = [text for row in rows for text in (*row[:2], *row[-2:])]
    return [
        [_passage(chunk, index, at, row=row, edges=edges) for at in range(len(row))]
        for index, (chunk, row) in enumerate(zip(chunks, rows, strict=True))
    ]


def quotable(rows: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the passages worth quoting, each text once; cut-off ones only where there are no others."""
    found: dict[str, Passage] = {}
    for row in rows:
        for passage in row:
            if len(passage.stems) >= _FEWEST_STEMS and not _shouted(passage.text):
                found.setdefault(passage.text.casefold(), passage)
    whole = [passage for passage in found.values() if passage.whole]
    return whole or list(found.values())


def _pieces(text: str) -> Iterator[str]:
    for span in sentences(text)[:_MOST]:
        piece = text[span.start : span.end]
        if len(piece) <= _LONGEST:
            yield piece
        else:
            yield from _broken(piece)


def _broken(text: str) -> Iterator[str]:
    """Yield pieces of a text without full stops, cut at line ends, commas or spaces."""
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


def _passage(chunk: Chunk, index: int, at: int, *, row: list[str], edges: list[str]) -> Passage:
    text = row[at]
    first, last = at == 0 and not _opens(chunk), at == len(row) - 1
    cut = (first and text[:1].islower()) or (last and not _ENDED.search(text))
    if not cut and (first or last):
        cut = any(len(other) > len(text) and other.endswith(text) for other in edges) if first else cut
        cut = cut or (last and any(len(other) > len(text) and other.startswith(text) for other in edges))
    return Passage(index, at, text, frozenset(stems(text)), not cut)


def _opens(chunk: Chunk) -> bool:
    return chunk.start == 0 or (chunk.start is None and chunk.position == 0)


def _shouted(text: str) -> bool:
    return sum(map(str.islower, text)) * 2 < sum(map(str.isupper, text))
