"""Fuse rankings by reciprocal rank, and search chunks by words and vector."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from hgmem.graph.database import Database
from hgmem.graph.full_text import Ranking, worded_chunks
from hgmem.graph.retrieval import Scope, near_chunks
from hgmem.values.graph_elements import Chunk

FUSION = 60  # reciprocal rank fusion's constant: how much the first ranks count over the later ones
PROPOSED_NEAREST = 150  # hits that a vector index is asked for at least: fewer miss some of the 20 nearest among copies


def fuse(rankings: Iterable[Iterable[str]]) -> list[str]:
    """Fuse the rankings by reciprocal rank, best first, ties by uid."""
    return list(reciprocal_ranks(rankings))


def reciprocal_ranks(rankings: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return uids with their sums of reciprocal ranks (Cormack et al., 2009), best first, ties by uid."""
    weights: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, uid in enumerate(ranking, start=1):
            weights[uid] += 1 / (FUSION + rank)
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0])))


def hybrid_chunks(
    database: Database, asked: tuple[str, Any], *, scope: Scope, ranking: Ranking
) -> list[tuple[Chunk, float]]:
    """Return the chunks that a question (text and unit vector) finds, with their fused weights, best first.

    `ranking` says how words are ranked, and how many chunks each of the two rankings brings.
    """
    text, query = asked
    near = near_chunks(database, scope=scope, query=query, k=ranking.k, over=max(ranking.k, PROPOSED_NEAREST))
    worded = worded_chunks(database, scope=scope, text=text, ranking=ranking)
    known = {chunk.uid: chunk for chunk, _ in (*near, *worded)}
    ranks = reciprocal_ranks([chunk.uid for chunk, _ in ranked] for ranked in (worded, near))
    return [(known[uid], weight) for uid, weight in ranks.items()]
