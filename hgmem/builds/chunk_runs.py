"""Runs of a document's neighbouring chunks, as units of a build: where they begin, and their text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from hgmem.retrieval.rendering import overlap
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import Chunk

_LEAST = 4  # a run has at least this part of the most, where its borders allow that


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a sequence: its tokens, and a name made of its content. A run may begin where it `opens` one."""

    tokens: int
    name: str
    opens: bool = True


def runs(pieces: Sequence[Piece], *, most: int) -> list[range]:
    """Return runs of neighbouring pieces of at most `most` tokens, but at least one piece, in order.

    A sequence that is too long is split at one border, and each part again. The border is the one whose next piece has
    the least hash, among pieces that open a run and leave no part too short. An inserted piece therefore changes only
    the runs beside it, unless its own hash is less than all others of a longer part.
    """
    before = [0, *accumulate(piece.tokens for piece in pieces)]
    hashes = [text_hash(piece.name) for piece in pieces]
    found: list[range] = []
    left = [range(len(pieces))] if pieces else []
    while left:
        run = left.pop()
        if len(run) == 1 or before[run.stop] - before[run.start] <= most:
            found.append(run)
            continue
        at = min(_borders(pieces, run, before, least=most // _LEAST), key=lambda place: (hashes[place], place))
        left += [range(at, run.stop), range(run.start, at)]
    return found


def _borders(pieces: Sequence[Piece], run: range, before: Sequence[int], *, least: int) -> Iterator[int]:
    """Yield the places where a run may be split: where pieces open one and not near its ends, if there are any."""
    inside = range(run.start + 1, run.stop)
    far = [at for at in inside if least <= before[at] - before[run.start] and least <= before[run.stop] - before[at]]
    opening = [at for at in far if pieces[at].opens]
    yield from opening or [at for at in inside if pieces[at].opens] or far or inside


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
