"""Where quotes stand: texts compared without what rendering changes, and the chunks of a corpus that hold them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hgmem.evaluation.formats import Evidence
from hgmem.models.extractive.key_phrases import stopwords
from hgmem.text.identity import uid
from hgmem.text.segmentation import Span, words
from hgmem.values.evidence import CONTINUED
from hgmem.values.graph_elements import Chunk

# Rendering writes a source's [1] as ‹1› and opens its tags with ‹: brackets don't count, on either side.
_BRACKETS = str.maketrans(dict.fromkeys("<>‹›[]"))
# A passage that continues the one before leaves out the words that both hold: a quote may run on over its heading.
_CONTINUED = re.compile(rf"\n\n\[\d+\][^\n]*\n{CONTINUED}")
_SPACED = 0x0E00  # scripts from here on, such as Thai and Chinese, may write words without spaces between them
STRETCH = 3  # times as many words as a quote has, within which a rewritten statement has to say it
LEAST_STRETCH = 25  # words
ENOUGH = 0.8  # of a quote's content words
CONTEXT = 80  # characters of a chunk that have to be shown where only a part of a quote stands in it
MOST_CHUNKS = 8  # that one quote runs through


def plain(text: str) -> str:
    """Return a text for comparison: NFKC, casefolded, whitespace collapsed, without the markup of rendering."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.replace("\0", "").translate(_BRACKETS).split())


def plain_prompt(text: str) -> str:
    """Return a prompt for comparison, as `plain` does, with passages joined where one continues the other."""
    return plain(_CONTINUED.sub(" ", text))


def spans_of(quote: str, text: str) -> Iterator[Span]:
    """Yield where whole words of a plain quote stand in a plain text."""
    at = text.find(quote) if quote else -1
    while at >= 0:
        end = at + len(quote)
        if not (_joined(text, at) or _joined(text, end)):
            yield Span(at, end)
        at = text.find(quote, at + 1)


def stands(quote: str, text: str) -> bool:
    """Whether whole words of a plain quote stand in a plain text."""
    return next(spans_of(quote, text), None) is not None


def restated(quote: str, statement: str) -> bool:
    """Whether a stretch of a statement, little longer than the quote, has enough of the quote's content words.

    Content words are those that tell something, or all where none does. A long summary has most words somewhere, but
    says nothing of the kind in one place.
    """
    quoted, stated = words(quote), words(statement)
    content = frozenset(quoted) - stopwords(quoted) or frozenset(quoted)
    length = max(LEAST_STRETCH, STRETCH * len(quoted))
    needed = ENOUGH * len(content)
    return bool(content) and any(
        len(content.intersection(stated[at : at + length])) >= needed for at in range(max(1, len(stated) - length + 1))
    )


def _joined(text: str, at: int) -> bool:
    """Whether a word goes on over the border at `at`."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return before.isalnum() and after.isalnum() and ord(before) < _SPACED and ord(after) < _SPACED


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePlace:
    """Neighbouring chunks (uids) that hold a quote together, and of each the piece of text that has to be shown.

    `own`: they belong to the document that the evidence names.
    """

    chunks: tuple[str, ...]
    pieces: tuple[str, ...]
    own: bool


@dataclass(frozen=True, kw_only=True)
class CorpusChunks:
    """The chunks of a corpus with their plain texts."""

    corpus: str
    chunks: tuple[Chunk, ...] = field(repr=False)

    @cached_property
    def texts(self) -> dict[str, str]:
        """The plain text of each chunk, by uid."""
        return {chunk.uid: plain(chunk.text) for chunk in self.chunks}

    @cached_property
    def lengths(self) -> dict[str, int]:
        """The characters of each chunk, by uid."""
        return {chunk.uid: len(chunk.text) for chunk in self.chunks}

    @cached_property
    def _documents(self) -> dict[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in sorted(self.chunks, key=lambda chunk: (chunk.document, chunk.position, chunk.uid)):
            found.setdefault(chunk.document, []).append(chunk)
        return found

    def places(self, evidence: Evidence) -> tuple[QuotePlace, ...]:
        """Return every place where a quote stands, those of its own document marked.

        An imported graph may know its documents by other ids. Every place is then the evidence's own.
        """
        quote, named = plain(evidence.text), evidence.document
        if named not in self._documents:
            named = uid(self.corpus, "document", named)
        known = named in self._documents
        return tuple(
            QuotePlace(chunks=chunks, pieces=pieces, own=document == named or not known)
            for document, ordered in self._documents.items()
            for chunks, pieces in self._runs(quote, ordered, far=document == named or not known)
        )

    def _runs(
        self, quote: str, ordered: Sequence[Chunk], *, far: bool
    ) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield the chunks that hold a quote alone, or, if none does and `far`, runs of neighbours that do."""
        alone = [chunk.uid for chunk in ordered if stands(quote, self.texts[chunk.uid])]
        yield from (((chunk,), (quote,)) for chunk in alone)
        if alone or not far:
            return
        for at, first in enumerate(ordered):
            run = [chunk.uid for chunk in _neighbours(first, ordered[at + 1 : at + MOST_CHUNKS])]
            pieces = joined(quote, [self.texts[chunk] for chunk in run])
            if pieces:
                yield tuple(run[: len(pieces)]), pieces


def joined(quote: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces of the first plain texts that hold a quote together, or nothing.

    The first text ends with the quote's beginning, the last begins with its end, and all between stand whole in it.
    """
    covered = _overlap(texts[0], quote)
    if not covered:
        return ()
    pieces = [texts[0][-max(covered, CONTEXT) :]]
    for text in texts[1:]:
        left = len(quote) - _overlap(quote, text)
        if left < len(quote) and left <= covered + (quote[covered : covered + 1] == " "):
            return (*pieces, text[: max(len(quote) - left, CONTEXT)])
        at = quote.find(text) if text else -1
        if not 0 <= at <= covered + 1:
            return ()
        covered = max(covered, at + len(text))
        pieces.append(text)
    return ()


def _overlap(before: str, after: str) -> int:
    """Return the length of the longest end of `before` that is a beginning of `after`."""
    most = min(len(before), len(after))
    return next((length for length in range(most, 0, -1) if before.endswith(after[:length])), 0)


def _neighbours(first: Chunk, following: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield a chunk and those that follow it without a gap."""
    yield first
    position = first.position
    for chunk in following:
        if chunk.position != position + 1:
            return
        position = chunk.position
        yield chunk
