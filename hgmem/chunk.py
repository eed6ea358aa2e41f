"""Texts cut into chunks with exact offsets."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hgmem.errors import DocumentError, UsageError
from hgmem.identity import text_hash, uid
from hgmem.model import Chunk
from hgmem.sections import sections
from hgmem.text import Span
from hgmem.tokens import count

# What would cost the splitter minutes: line ends that it takes for sentences, and long runs of blanks.
_LINE_ENDS = str.maketrans("\x85\u2028\u2029", "\n\n\n")
_GAP = re.compile(r"\s{200,}")
_WINDOW = 32  # characters per token of a chunk: how much text the splitter sees at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How a text is cut: at most `tokens` a piece, `overlap` shared by neighbours, anew after `restart` tokens.

    Chunking begins anew at headings too, so that an edit leaves the pieces of other sections as they were; without
    `restart` (0) the whole text is one run of windows.
    """

    tokens: int = 200
    overlap: int = 50
    restart: int = 2_000

    def __post_init__(self) -> None:
        """Refuse windows that do not move on."""
        if not 0 <= self.overlap < self.tokens or self.restart < 0:
            raise UsageError(
                f"chunks of {self.tokens!r} tokens with {self.overlap!r} overlap: need 0 <= overlap < tokens"
            )

    def __str__(self) -> str:
        return f"{self.tokens}/{self.overlap}/{self.restart}"


PAPER = Cutting(restart=0)
"""Plain windows of 200 tokens, 50 of them shared (HGMem, 2025; its official code is set so too)."""

DEFAULT = Cutting()
"""The paper's windows, begun anew at headings and after 2,000 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a text: `whole[start:end] == text`."""

    text: str
    start: int
    end: int
    tokens: int


def split(text: str, cutting: Cutting = DEFAULT) -> list[Piece]:
    """Return the text's pieces in order.

    Cuts where it hurts least: at paragraphs, then lines, sentences, words. Blanks at a piece's ends are cut
    off, and what is only blank is in no piece.
    """
    _check(text)
    pieces: list[Piece] = []
    for begin, stretch in _stretches(text.translate(_LINE_ENDS), cutting):
        for start, end in _cut(begin, stretch, cutting):
            part = text[start:end]
            if part.strip() and (not pieces or end > pieces[-1].end):  # else the one before holds it
                pieces.append(Piece(text=part, start=start, end=end, tokens=count(part)))
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


def _stretches(text: str, cutting: Cutting) -> Iterator[tuple[int, str]]:
    """Yield start and text of what no piece reaches beyond: sections, and in them what lies between wide gaps."""
    whole = Span(0, len(text))
    for section in sections(text, tokens=cutting.restart) if cutting.restart else (whole,):
        begin = section.start
        for gap in _GAP.finditer(text, *section):
            yield begin, text[begin : gap.start()]
            begin = gap.end()
        yield begin, text[begin : section.end]


def _cut(begin: int, text: str, cutting: Cutting) -> Iterator[Span]:
    """Yield the pieces of a stretch that begins at `begin`, through a window that moves over it.

    The splitter's time grows with the square of what it sees. The last piece of a window may have been cut
    short by the window's end, so the next window begins where that piece began: overlaps stay, nothing moves.
    """
    from semantic_text_splitter import TextSplitter  # a compiled module that `import hgmem` need not load

    splitter = TextSplitter.from_callback(count, cutting.tokens, cutting.overlap)
    usual = width = cutting.tokens * _WINDOW
    at = 0
    while at < len(text):
        found = splitter.chunk_indices(text[at : at + width])
        spans = [Span(begin + at + start, begin + at + start + len(part)) for start, part in found]
        if at + width >= len(text):
            yield from spans
            return
        if len(spans) < 2 or spans[-1].start == begin + at:  # mostly blanks: one piece is longer than the window
            width *= 2
            continue
        yield from spans[:-1]
        at = spans[-1].start - begin
        width = usual
