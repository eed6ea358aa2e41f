"""Recall among equal amounts: the first so many chunks, or characters, of a record's ranking."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from hgmem.evaluation.recall import Sought
from hgmem.evaluation.shelf import Shelf
from hgmem.evaluation.wording import plain, stands
from hgmem.values.graph_elements import Chunk

CHARACTERS = (5_000, 10_000, 20_000, 40_000)
CHUNKS = (5, 10, 20, 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The share of evidence found among so many characters, and among so many chunks."""

    characters: dict[int, float]
    chunks: dict[int, float]


def wanted(held: Shelf) -> int:
    """Return how many chunks fill the longest curve."""
    mean = sum(held.lengths.values()) / max(1, len(held.lengths))
    return max(*CHUNKS, ceil(1.5 * CHARACTERS[-1] / max(1.0, mean)))


def curves(sought: Sequence[Sought], ranked: Sequence[Chunk]) -> Curves | None:
    """Return the curves of a ranking, the best chunk first, or None for a question without evidence."""
    if not sought:
        return None
    return Curves(
        characters={most: _recall(sought, list(_within(ranked, most))) for most in CHARACTERS},
        chunks={most: _recall(sought, [(one.uid, one.text) for one in ranked[:most]]) for most in CHUNKS},
    )


def _within(ranked: Sequence[Chunk], most: int) -> Iterator[tuple[str, str]]:
    """Yield the first chunks of so many characters, the last one cut and without its uid."""
    for chunk in ranked:
        if len(chunk.text) >= most:
            yield "", chunk.text[:most]
            return
        most -= len(chunk.text)
        yield chunk.uid, chunk.text


def _recall(sought: Sequence[Sought], held: Sequence[tuple[str, str]]) -> float:
    uids, texts = {uid for uid, _ in held}, [plain(text) for _, text in held]
    return sum(_among(one, uids, texts) for one in sought) / len(sought)


def _among(sought: Sought, uids: set[str], texts: Sequence[str]) -> bool:
    if any(uids.issuperset(place.chunks) for place in sought.places):
        return True
    quote = plain(sought.evidence.text)
    return any(stands(quote, text) for text in texts)
