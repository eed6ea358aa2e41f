"""Context packing: selects the parts of memory and evidence that fit into a prompt, and those that are new."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from hgmem.retrieval.rendering import Shown
from hgmem.text.tokens import count
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import MemoryPoint

Nearness: TypeAlias = Callable[[Sequence[MemoryPoint]], Sequence[float]]

# Caches for points: a step shows the same ones several times.
_tokens = lru_cache(maxsize=16_384)(count)
_words = lru_cache(maxsize=16_384)(lambda text: len(text.split()) if text.isascii() else 0)


def shown(points: Sequence[MemoryPoint], *, tokens: int, near: Nearness, targets: Collection[str] = ()) -> Shown:
    """Return the points that fit into `tokens`, in the order of memory, and the number left out.

    Targets (uids) come first, then the newest, then those nearest to the question. `near` is called only if not all
    points fit.
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
    """Whether all points fit into `tokens`."""
    left = tokens
    for point in points:
        left -= size(point)
        if left < 0:
            return False
    return True


def size(point: MemoryPoint) -> int:
    """Return the approximate number of tokens of a point in a prompt."""
    return _tokens(point.description) + sum([_tokens(entity.name) + 1 for entity in point.entities]) + 4


def _least(point: MemoryPoint) -> int:
    """Return a lower bound of `size` without tokenising: an ASCII word has at least one token."""
    return _words(point.description) + len(point.entities) + 4


def trimmed(evidence: Evidence, *, tokens: int, read: Collection[str] = ()) -> Evidence:
    """Return the evidence with the chunks that fit into `tokens`, the best of every sub-query first.

    Chunks that were `read` (uids) come after all others.
    """
    ranks: dict[str, tuple[int, float]] = {}
    for one in evidence.retrieved:
        for hit in one.chunks:
            ranks[hit.uid] = min(ranks.get(hit.uid, (hit.rank, -hit.score)), (hit.rank, -hit.score))
    last = (len(ranks), 0.0)
    order = sorted(evidence.chunks, key=lambda chunk: (chunk.uid in read, *ranks.get(chunk.uid, last), chunk.uid))
    kept = {chunk.uid for chunk in within(order, tokens=tokens)}
    return replace(evidence, chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid in kept))


def unknown(evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
    """Return the part of the evidence that is not in memory.

    These are entities outside V_M, relations not entirely inside V_M, and chunks that support no active point.
    """
    held = {entity.uid for point in points for entity in point.entities}
    supports = {uid for point in points for uid in point.chunks}
    return replace(
        evidence,
        entities=tuple(entity for entity in evidence.entities if entity.uid not in held),
        relations=tuple(relation for relation in evidence.relations if not {relation.source, relation.target} <= held),
        chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid not in supports),
    )


def unsaid(evidence: Evidence) -> Evidence:
    """Return the evidence without what its chunks on show say themselves.

    A relation is left out if all chunks that state it are on show, and an entity's description if the chunk behind it
    that is nearest to the sub-queries is.
    """
    on_show = {chunk.uid for chunk in evidence.chunks}
    told = {thing for thing, uids in evidence.behind.items() if uids and uids[0] in on_show}
    return replace(
        evidence,
        entities=tuple(replace(each, description="") if each.uid in told else each for each in evidence.entities),
        relations=tuple(each for each in evidence.relations if not each.chunks or not on_show.issuperset(each.chunks)),
    )


def traced(evidence: Evidence) -> Evidence:
    """Return the evidence with the chunks behind each of its lines that a prompt names, and the sources among them.

    These are the chunks behind a line that are on show. Without any, it is the nearest, as a source.
    """
    on_show = {chunk.uid for chunk in evidence.chunks}
    lines = {one.uid for one in evidence.entities} | {one.uid for one in evidence.relations}
    behind = {
        thing: tuple(uid for uid in uids if uid in on_show) or uids[:1]
        for thing, uids in evidence.behind.items()
        if thing in lines
    }
    named = {uid for uids in behind.values() for uid in uids} - on_show
    return replace(evidence, behind=behind, sources=tuple(source for source in evidence.sources if source.uid in named))


def within(chunks: Sequence[Chunk], *, tokens: int, least: int = 1) -> list[Chunk]:
    """Return the first chunks that fit into `tokens`, but at least `least`."""
    kept: list[Chunk] = []
    left = tokens
    for chunk in chunks:
        left -= tokens_of(chunk)
        if left < 0 and len(kept) >= least:
            break
        kept.append(chunk)
    return kept


def tokens_of(*chunks: Chunk) -> int:
    """Return the number of tokens of chunks."""
    return sum(chunk.tokens or count(chunk.text) for chunk in chunks)


def in_order(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return chunks in document order."""
    return sorted(chunks, key=lambda chunk: (chunk.document, chunk.position, chunk.uid))
