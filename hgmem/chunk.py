"""Texts cut into chunks with exact offsets."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hgmem.errors import DocumentError, UsageError
from hgmem.identity import text_hash, uid
from hgmem.model import Chunk
from hgmem.tokens import count

# What would cost the splitter minutes: line ends that it takes for sentences, and long runs of blanks.
_LINE_ENDS = str.maketrans("\x85\u2028\u2029", "\n\n\n")
_GAP = re.compile(r"\s{200,}")
_WINDOW = 32  # characters per token of a chunk: how much text the splitter sees at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a text: `whole[start:end] == text`."""

    text: str
    start: int
    end: int
    tokens: int


def split(text: str, *, tokens: int = 200, overlap: int = 50) -> list[Piece]:
    """Return the text's pieces in order: at most `tokens` long, neighbours sharing at most `overlap`.

    Cuts where it hurts least: at paragraphs, then lines, sentences, words. Blanks at a piece's ends are cut
    off, and what is only blank is in no piece.
    """
    if not 0 <= overlap < tokens:
        raise UsageError(f"chunks of {tokens!r} tokens with {overlap!r} overlap: need 0 <= overlap < tokens")
    _check(text)
    pieces: list[Piece] = []
    for begin, stretch in _stretches(text.translate(_LINE_ENDS)):
        for start, end in _cut(stretch, tokens, overlap):
            part = text[begin + start : begin + end]
            if part.strip() and (not pieces or begin + end > pieces[-1].end):  # else the one before holds it
                pieces.append(Piece(text=part, start=begin + start, end=begin + end, tokens=count(part)))
    return pieces


def chunks(pieces: Iterable[Piece], *, corpus: str, document: str, title: str = "") -> tuple[Chunk, ...]:
    """Return the pieces as the chunks of the document with the uid `document`, numbered from 0.

    A chunk's uid comes from its text and, for equal texts within the document, which one of them it is: so it
    stays the same when other chunks come or go.
    """
    seen: Counter[str] = Counter()
    found = []
    for position, piece in enumerate(pieces):
        digest = text_hash(piece.text)
        chunk = Chunk(
            uid=uid(corpus, "chunk", document, digest, seen[digest]),
            document=document,
            position=position,
            text=piece.text,
            tokens=piece.tokens,
            start=piece.start,
            end=piece.end,
            title=title,
        )
        seen[digest] += 1
        found.append(chunk)
    return tuple(found)


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"the text holds half a surrogate pair at character {error.start}") from None


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """Yield start and text of what lies between wide gaps: no piece reaches across one."""
    begin = 0
    for gap in _GAP.finditer(text):
        yield begin, text[begin : gap.start()]
        begin = gap.end()
    yield begin, text[begin:]


def _cut(text: str, tokens: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece, through a window that moves over the text.

    The splitter's time grows with the square of what it sees. The last piece of a window may have been cut
    short by the window's end, so the next window begins where that piece began: overlaps stay, nothing moves.
    """
    from semantic_text_splitter import TextSplitter  # a compiled module that `import hgmem` need not load

    splitter = TextSplitter.from_callback(count, tokens, overlap)
    width = tokens * _WINDOW
    at = 0
    while at < len(text):
        found = splitter.chunk_indices(text[at : at + width])
        spans = [(at + start, at + start + len(part)) for start, part in found]
        if at + width >= len(text):
            yield from spans
            return
        if len(spans) < 2 or spans[-1][0] == at:  # mostly blanks: one piece is longer than the window
            width *= 2
            continue
        yield from spans[:-1]
        at = spans[-1][0]
        width = tokens * _WINDOW
