"""Split texts into chunks with exact offsets."""

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hgmem.errors import DocumentError, UsageError
from hgmem.text.identity import text_hash, uid
from hgmem.text.segmentation import Span, headings
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk

_BREAK = re.compile(r"\n[ \t\r]*\n\s*")
_ONE_IN = 8  # one in so many paragraphs may end a section early
# These cost the splitter minutes: line separators that it treats as sentence ends, and long runs of blanks.
_LINE_ENDS = str.maketrans("\x85\u2028\u2029", "\n\n\n")
_GAP = re.compile(r"\s{200,}")
_WINDOW = 32  # characters per token of a chunk that the splitter sees at once


def sections(text: str, *, tokens: int) -> Iterator[Span]:
    """Yield the sections of a text in order, without gaps.

    A section begins at every Markdown heading outside code blocks, and at the first paragraph after `tokens` tokens.
    After half as many tokens, it also ends at a paragraph whose hash selects it. Section borders therefore depend on
    nearby text only, and those after an insertion stay the same (docs/decisions/0010).
    """
    starts = [0, *(heading.start for heading in headings(text) if heading.start)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield from _bounded(text, Span(start, end), tokens)


def _bounded(text: str, section: Span, tokens: int) -> Iterator[Span]:
    begin = at = section.start
    held = 0
    for gap in _BREAK.finditer(text, *section):
        paragraph = text[at : gap.start()]
        at = gap.end()
        held += count(paragraph)
        if held >= tokens or (2 * held >= tokens and _ends_here(paragraph)):
            yield Span(begin, at)
            begin, held = at, 0
    if begin < section.end:
        yield Span(begin, section.end)


def _ends_here(paragraph: str) -> bool:
    return zlib.crc32(paragraph.encode("utf-8", "replace")) % _ONE_IN == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkOptions:
    """How to chunk a text: at most `tokens` per chunk, `overlap` shared with the previous one.

    Chunking restarts at headings and after `restart` tokens, so that an edit leaves the chunks of other sections
    unchanged. With `restart` 0, it never restarts.
    """

    tokens: int = 200
    overlap: int = 50
    restart: int = 2_000

    def __post_init__(self) -> None:
        """Raise `UsageError` unless each chunk advances beyond the previous one."""
        if not 0 <= self.overlap < self.tokens or self.restart < 0:
            raise UsageError(
                f"invalid chunk size: {self.tokens!r} tokens with {self.overlap!r} overlap: overlap must be at "
                "least 0 and less than tokens"
            )

    def __str__(self) -> str:
        return f"{self.tokens}/{self.overlap}/{self.restart}"


PAPER = ChunkOptions(restart=0)
"""At most 200 tokens with 50 tokens overlap, never restarted: the sizes of the HGMem paper (2025, section 4.2)."""

DEFAULT = ChunkOptions()
"""The paper's windows, restarted at headings and after 2,000 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text, with `whole[start:end] == text`."""

    text: str
    start: int
    end: int
    tokens: int


def split(text: str, options: ChunkOptions = DEFAULT) -> list[Piece]:
    """Return the text's pieces in order.

    Splits at paragraphs if possible, else at lines, sentences or words. Pieces are stripped, and blank text is skipped.
    Raises `DocumentError` for an unpaired surrogate.
    """
    _check(text)
    pieces: list[Piece] = []
    for begin, stretch in _stretches(text.translate(_LINE_ENDS), options):
        for start, end in _cut(begin, stretch, options):
            part = text[start:end]
            if part.strip() and (not pieces or end > pieces[-1].end):  # else the previous piece contains it
                pieces.append(Piece(text=part, start=start, end=end, tokens=count(part)))
    return pieces


def chunks(pieces: Iterable[Piece], *, corpus: str, document: str, title: str = "") -> tuple[Chunk, ...]:
    """Return the pieces as chunks, numbered from 0, of the document with this uid.

    A chunk's uid depends on its text and, for repeated texts, on the number of the repetition. It stays the same when
    other chunks are added or removed.
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
        raise DocumentError(f"the text has an unpaired surrogate at character {error.start}: remove it") from None


def _stretches(text: str, options: ChunkOptions) -> Iterator[tuple[int, str]]:
    """Yield start and text of the sections between headings and wide gaps, which no piece crosses."""
    whole = Span(0, len(text))
    for section in sections(text, tokens=options.restart) if options.restart else (whole,):
        begin = section.start
        for gap in _GAP.finditer(text, *section):
            yield begin, text[begin : gap.start()]
            begin = gap.end()
        yield begin, text[begin : section.end]


def _cut(begin: int, text: str, options: ChunkOptions) -> Iterator[Span]:
    """Yield the pieces of a section that begins at `begin`, split in a moving window.

    The splitter's time grows with the square of the text. The end of the window may truncate the last piece, so the
    next window begins where that piece began. The pieces are the same as without windows.
    """
    from semantic_text_splitter import TextSplitter  # a compiled module that `import hgmem` need not load

    splitter = TextSplitter.from_callback(count, options.tokens, options.overlap)
    usual = width = options.tokens * _WINDOW
    at = 0
    while at < len(text):
        found = splitter.chunk_indices(text[at : at + width])
        spans = [Span(begin + at + start, begin + at + start + len(part)) for start, part in found]
        if at + width >= len(text):
            yield from spans
            return
        if len(spans) < 2 or spans[-1].start == begin + at:  # mostly blanks: one piece exceeds the window
            width *= 2
            continue
        yield from spans[:-1]
        at = spans[-1].start - begin
        width = usual
