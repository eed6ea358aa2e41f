"""Runs of a document's neighbouring chunks, as units of a build: where they begin, and their text."""

from collections.abc import Iterator, Sequence

from hgmem.builds.content_borders import Piece, runs
from hgmem.retrieval.rendering import overlap
from hgmem.values.graph_elements import Chunk


def chunk_runs(chunks: Sequence[Chunk], *, most: int) -> Iterator[Sequence[Chunk]]:
    """Yield runs of a document's chunks of at most `most` tokens, but at least one chunk, in order.

    A run begins where chunking does, if it can: at a chunk that repeats nothing of the one before.
    """
    pieces = [
        Piece(tokens=chunk.tokens, name=chunk.text, opens=not overlap(last, chunk))
        for last, chunk in zip((None, *chunks), chunks, strict=False)
    ]
    for run in runs(pieces, most=most):
        yield chunks[run.start : run.stop]


def joined_text(chunks: Sequence[Chunk]) -> str:
    """Return the text of neighbouring chunks, what two of them share written once."""
    text = ""
    for last, chunk in zip((None, *chunks), chunks, strict=False):
        shared = overlap(last, chunk)
        text += chunk.text[shared:] if shared else f"\n\n{chunk.text}"
    return text.strip()
