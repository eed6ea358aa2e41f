"""Split texts into sections, so that an edit changes only the chunks near it."""

import re
import zlib
from collections.abc import Iterator

from hgmem.text.segmentation import Span, headings
from hgmem.text.tokens import count

_BREAK = re.compile(r"\n[ \t\r]*\n\s*")
_ONE_IN = 8  # one in so many paragraphs may end a section early


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
