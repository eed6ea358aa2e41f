"""Context packing: selects the parts of memory and evidence that fit into a prompt, and those that are new."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

from hgmem.retrieval.rendering import PromptMemory
from hgmem.text.tokens import count
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import MemoryPoint

# Caches for points: a step shows the same ones several times.
_tokens = lru_cache(maxsize=16_384)(count)
_words = lru_cache(maxsize=16_384)(lambda text: len(text.split()) if text.isascii() else 0)


def fit_points(
    points: Sequence[MemoryPoint],
    *,
    tokens: int,
    near: Callable[[Sequence[MemoryPoint]], Sequence[float]],
    targets: Collection[str] = (),
) -> PromptMemory:
    """Return the points that fit into `tokens`, in the order of memory, and the number left out.

    Targets (uids) come first, then the newest, then those nearest to the question. `near` is called only if not all
    points fit.
    """
    if fits(points, tokens=tokens):
        return PromptMemory(points=tuple(points))
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
    return PromptMemory(points=tuple(points[at] for at in sorted(chosen)), more=len(points) - len(chosen))


def fits(points: Sequence[MemoryPoint], *, tokens: int) -> bool:
    """Whether all points fit into `tokens`."""
    return all(total <= tokens for total in accumulate(map(size, points)))


def size(point: MemoryPoint) -> int:
    """Return the approximate number of tokens of a point in a prompt."""
    return _tokens(point.description) + sum([_tokens(entity.name) + 1 for entity in point.entities]) + 4


def _least(point: MemoryPoint) -> int:
    """Return a lower bound of `size` without tokenising: an ASCII word has at least one token."""
    return _words(point.description) + len(point.entities) + 4


def visible_evidence(
    evidence: Evidence,
    points: Sequence[MemoryPoint],
    *,
    tokens: int,
    only_new: bool = False,
    read_uids: Collection[str] = (),
) -> Evidence:
    """Return the part that a prompt shows beside these points, with the chunks that fit into `tokens`.

    With `only_new` it leaves out what the points hold and what its chunks say, and chunks that were read before
    (`read_uids`) come last.
    """
    if not only_new:
        return trimmed(evidence, tokens=tokens)
    return unsaid(trimmed(unknown(evidence, points), tokens=tokens, read_uids=read_uids))


def trimmed(evidence: Evidence, *, tokens: int, read_uids: Collection[str] = ()) -> Evidence:
    """Return the evidence with the chunks that fit into `tokens`, the best of every sub-query first.

    Chunks that were read before (`read_uids`) come after all others.
    """
    ranks: dict[str, tuple[int, float]] = {}
    for found in evidence.retrieved:
        for hit in found.chunks:
            ranks[hit.uid] = min(ranks.get(hit.uid, (hit.rank, -hit.score)), (hit.rank, -hit.score))
    last = (len(ranks), 0.0)
    order = sorted(evidence.chunks, key=lambda chunk: (chunk.uid in read_uids, *ranks.get(chunk.uid, last), chunk.uid))
    kept = {chunk.uid for chunk in within(order, tokens=tokens)}
    return replace(evidence, chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid in kept))


def unknown(evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
    """Return the part of the evidence that is not in memory.

    These are entities outside V_M, relations not entirely inside V_M, and chunks that support no active point.
    """
    involved = {entity.uid for point in points for entity in point.entities}
    supports = {uid for point in points for uid in point.chunks}
    return replace(
        evidence,
        entities=tuple(entity for entity in evidence.entities if entity.uid not in involved),
        relations=tuple(each for each in evidence.relations if not {each.source, each.target} <= involved),
        chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid not in supports),
    )


def unsaid(evidence: Evidence) -> Evidence:
    """Return the evidence without what its own chunks say.

    A relation is left out if all chunks that state it are among them, and an entity's description if the chunk behind
    it that is nearest to the sub-queries is.
    """
    visible = {chunk.uid for chunk in evidence.chunks}
    repeated = {thing for thing, uids in evidence.behind.items() if uids and uids[0] in visible}
    return replace(
        evidence,
        entities=tuple(replace(each, description="") if each.uid in repeated else each for each in evidence.entities),
        relations=tuple(each for each in evidence.relations if not each.chunks or not visible.issuperset(each.chunks)),
    )


def traced(evidence: Evidence) -> Evidence:
    """Return the evidence with the chunks behind each of its lines that a prompt names, and the sources among them.

    These are the chunks behind a line that the prompt shows. Without any, it is the nearest, as a source.
    """
    visible = {chunk.uid for chunk in evidence.chunks}
    lines = {entity.uid for entity in evidence.entities} | {relation.uid for relation in evidence.relations}
    behind = {
        thing: tuple(uid for uid in uids if uid in visible) or uids[:1]
        for thing, uids in evidence.behind.items()
        if thing in lines
    }
    named = {uid for uids in behind.values() for uid in uids} - visible
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
