"""The chunks of a corpus, and in which of them a piece of evidence stands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hgmem.evaluation.formats import Evidence
from hgmem.evaluation.wording import plain, stands
from hgmem.text.identity import uid
from hgmem.values.graph_elements import Chunk

CONTEXT = 80  # characters of a chunk that have to be shown where only a part of a quote stands in it
MOST_CHUNKS = 8  # that one quote runs through


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Neighbouring chunks (uids) that hold a quote together, and of each the piece of text that has to be shown.

    `own`: they belong to the document that the evidence names.
    """

    chunks: tuple[str, ...]
    pieces: tuple[str, ...]
    own: bool


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """A corpus's chunks with their plain texts."""

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
        for chunk in sorted(self.chunks, key=lambda one: (one.document, one.position, one.uid)):
            found.setdefault(chunk.document, []).append(chunk)
        return found

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """Return every place where a quote stands, those of its own document marked.

        An imported graph may know its documents by other ids. Every place is then the evidence's own.
        """
        quote, document = plain(evidence.text), uid(self.corpus, "document", evidence.document)
        known = document in self._documents
        return tuple(
            Place(chunks=chunks, pieces=pieces, own=one == document or not known)
            for one, ordered in self._documents.items()
            for chunks, pieces in self._runs(quote, ordered, far=one == document or not known)
        )

    def _runs(
        self, quote: str, ordered: Sequence[Chunk], *, far: bool
    ) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield the chunks that hold a quote alone, or, if none does and `far`, runs of neighbours that do."""
        alone = [chunk.uid for chunk in ordered if stands(quote, self.texts[chunk.uid])]
        yield from (((one,), (quote,)) for one in alone)
        if alone or not far:
            return
        for at, first in enumerate(ordered):
            run = [chunk.uid for chunk in _neighbours(first, ordered[at + 1 : at + MOST_CHUNKS])]
            pieces = joined(quote, [self.texts[one] for one in run])
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
