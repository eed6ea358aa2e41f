"""What of memory and of evidence goes into a prompt: what fits, and what is new."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from hgmem.model import Chunk, Evidence, MemoryPoint
from hgmem.rendering import Shown
from hgmem.tokens import count

Nearness: TypeAlias = Callable[[Sequence[MemoryPoint]], Sequence[float]]

# Of texts and names of points: a step shows the same ones several times.
_tokens = lru_cache(maxsize=16_384)(count)
_words = lru_cache(maxsize=16_384)(lambda text: len(text.split()) if text.isascii() else 0)


def shown(points: Sequence[MemoryPoint], *, tokens: int, near: Nearness, targets: Collection[str] = ()) -> Shown:
    """Return the points that fit into so many tokens, in the order of memory, and how many are left out.

    Targets (uids) go first, then the newest, then those nearest to the question; `near` is asked only where not
    all fit.
    """
    if fits(points, tokens=tokens):
        return Shown(points=tuple(points))
    nearness = near(points)
    wanted = sorted(
        range(len(points)), key=lambda at: (points[at].uid not in targets, -points[at].born, -nearness[at], at)
    )
    chosen: set[int] = set()
    left = tokens
    for at in wanted:
        if not chosen or (_least(points[at]) <= left and size(points[at]) <= left):
            chosen.add(at)
            left -= size(points[at])
    return Shown(points=tuple(points[at] for at in sorted(chosen)), more=len(points) - len(chosen))


def fits(points: Sequence[MemoryPoint], *, tokens: int) -> bool:
    """Whether all the points go into so many tokens."""
    left = tokens
    for point in points:
        left -= size(point)
        if left < 0:
            return False
    return True


def size(point: MemoryPoint) -> int:
    """Return about how many tokens a point takes in a prompt."""
    return _tokens(point.description) + sum([_tokens(entity.name) + 1 for entity in point.entities]) + 4


def _least(point: MemoryPoint) -> int:
    """Return what `size` is not less than, without counting tokens: a word of ASCII is one at least."""
    return _words(point.description) + len(point.entities) + 4


def trimmed(evidence: Evidence, *, tokens: int) -> Evidence:
    """Return the evidence with those chunks that fit into so many tokens, the best of every sub-query first."""
    ranks: dict[str, tuple[int, float]] = {}
    for one in evidence.retrieved:
        for hit in one.chunks:
            ranks[hit.uid] = min(ranks.get(hit.uid, (hit.rank, -hit.score)), (hit.rank, -hit.score))
    order = sorted(evidence.chunks, key=lambda chunk: (*ranks.get(chunk.uid, (len(ranks), 0.0)), chunk.uid))
    kept = {chunk.uid for chunk in within(order, tokens=tokens)}
    return replace(evidence, chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid in kept))


def unknown(evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
    """Return the part of the evidence that memory lacks.

    That is entities outside V_M, relations that do not lie wholly inside V_M, and chunks that support no living
    point.
    """
    held = {entity.uid for point in points for entity in point.entities}
    supports = {uid for point in points for uid in point.chunks}
    return replace(
        evidence,
        entities=tuple(entity for entity in evidence.entities if entity.uid not in held),
        relations=tuple(relation for relation in evidence.relations if not {relation.source, relation.target} <= held),
        chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid not in supports),
    )


def within(chunks: Sequence[Chunk], *, tokens: int) -> list[Chunk]:
    """Return the first chunks that fit into so many tokens; one at least."""
    kept: list[Chunk] = []
    left = tokens
    for chunk in chunks:
        left -= chunk.tokens or count(chunk.text)
        if left < 0 and kept:
            break
        kept.append(chunk)
    return kept


def in_order(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return chunks as the documents have them."""
    return sorted(chunks, key=lambda chunk: (chunk.document, chunk.position, chunk.uid))
