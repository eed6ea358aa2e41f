"""Where chunking begins anew, so that an edit moves the chunks around it and not all those after it."""

import re
import zlib
from collections.abc import Iterator

from hgmem.text import Span, headings
from hgmem.tokens import count

_BREAK = re.compile(r"\n[ \t\r]*\n\s*")
_ONE_IN = 8  # paragraphs that may end a section before its time


def sections(text: str, *, tokens: int) -> Iterator[Span]:
    """Yield the sections of a text in order, without gaps; a few paragraphs of some text say where they end.

    One begins at every Markdown heading that is not in a code block, and, at the latest, at the first paragraph after
    `tokens` tokens. After half as many it begins where the paragraph before it happens to have a hash that says so:
    so borders depend on the text around them, and those after an insertion are found again (docs/decisions/0010).
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
