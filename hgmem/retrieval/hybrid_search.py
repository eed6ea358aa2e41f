"""Search of chunks by words and by vector together: two rankings, fused by reciprocal ranks."""

from typing import Any

from hgmem.graph.database import Database
from hgmem.graph.full_text import Ranking, worded_chunks
from hgmem.graph.retrieval import Scope, near_chunks
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST, reciprocal_ranks
from hgmem.values.graph_elements import Chunk


def hybrid_chunks(
    database: Database, asked: tuple[str, Any], *, scope: Scope, ranking: Ranking, fusion: float
) -> list[tuple[Chunk, float]]:
    """Return the chunks that a question (text and unit vector) finds, with their fused weights, best first.

    `ranking` says how words are ranked, and how many chunks each of the two rankings brings.
    """
    text, query = asked
    near = near_chunks(database, scope=scope, query=query, k=ranking.k, over=max(ranking.k, PROPOSED_NEAREST))
    worded = worded_chunks(database, scope=scope, text=text, ranking=ranking)
    known = {chunk.uid: chunk for chunk, _ in (*near, *worded)}
    ranks = reciprocal_ranks(([chunk.uid for chunk, _ in one] for one in (worded, near)), constant=fusion)
    return [(known[uid], weight) for uid, weight in ranks.items()]
