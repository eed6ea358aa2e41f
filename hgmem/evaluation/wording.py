"""Comparison of wordings: texts without what rendering changes, and where one stands in another."""

import re
import unicodedata
from collections.abc import Iterator

from hgmem.models.extractive.key_phrases import stopwords
from hgmem.text.segmentation import Span, words
from hgmem.values.evidence import CONTINUED

# Rendering writes a source's [1] as ‹1› and opens its tags with ‹: brackets don't count, on either side.
_BRACKETS = str.maketrans(dict.fromkeys("<>‹›[]"))
# A passage that continues the one before leaves out the words that both hold: a quote may run on over its heading.
_CONTINUED = re.compile(rf"\n\n\[\d+\][^\n]*\n{CONTINUED}")
_SPACED = 0x0E00  # scripts from here on, such as Thai and Chinese, may write words without spaces between them
STRETCH = 3  # times as many words as a quote has, within which a rewritten statement has to say it
LEAST_STRETCH = 25  # words
ENOUGH = 0.8  # of a quote's content words


def plain(text: str) -> str:
    """Return a text for comparison: NFKC, casefolded, whitespace collapsed, without the markup of rendering."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.replace("\0", "").translate(_BRACKETS).split())


def plain_prompt(text: str) -> str:
    """Return a prompt for comparison, as `plain` does, with passages joined where one continues the other."""
    return plain(_CONTINUED.sub(" ", text))


def places(quote: str, text: str) -> Iterator[Span]:
    """Yield where whole words of a plain quote stand in a plain text."""
    at = text.find(quote) if quote else -1
    while at >= 0:
        end = at + len(quote)
        if not (_joined(text, at) or _joined(text, end)):
            yield Span(at, end)
        at = text.find(quote, at + 1)


def stands(quote: str, text: str) -> bool:
    """Whether whole words of a plain quote stand in a plain text."""
    return next(places(quote, text), None) is not None


def content_words(quote: str) -> frozenset[str]:
    """Return the words of a quote that tell something, or all where none does."""
    all_words = words(quote)
    return frozenset(all_words) - stopwords(all_words) or frozenset(all_words)


def restated(quote: str, statement: str) -> bool:
    """Whether a stretch of a statement, little longer than the quote, has enough of the quote's content words.

    A long summary has most words somewhere, but says nothing of the kind in one place.
    """
    wanted = content_words(quote)
    said = words(statement)
    length = max(LEAST_STRETCH, STRETCH * len(words(quote)))
    needed = ENOUGH * len(wanted)
    return bool(wanted) and any(
        len(wanted.intersection(said[at : at + length])) >= needed for at in range(max(1, len(said) - length + 1))
    )


def _joined(text: str, at: int) -> bool:
    """Whether a word goes on over the border at `at`."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return before.isalnum() and after.isalnum() and ord(before) < _SPACED and ord(after) < _SPACED
