"""The chunks that a stored memory's steps retrieved, ranked."""

from collections.abc import Sequence

from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.retrieval.document_filters import choose
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory, Step


def latest_steps(memory: Memory) -> list[Step]:
    """Return the steps of the memory's latest question."""
    return [one for one in memory.steps if one.question == memory.steps[-1].question]


def scope_of(services: Services, memory: Memory) -> Scope:
    """Return the scope that the memory's latest question searched."""
    choice = choose(services.database, memory.steps[-1].filters, corpus=services.corpus)
    return Scope(corpus=services.corpus, memory=memory.uid, documents=choice.documents)


def recorded_chunks(services: Services, memory: Memory, *, limit: int | None) -> Sequence[Chunk]:
    """Return the chunks that the latest question's steps retrieved, by the fused ranks of their sub-queries."""
    scope = scope_of(services, memory)
    order = fuse([hit.uid for hit in one.chunks] for step in latest_steps(memory) for one in step.retrieved)
    texts = find_chunks(services.database, corpus=services.corpus, uids=order)
    found = [texts[uid] for uid in order if uid in texts]  # some may have been deleted
    within = found if scope.documents is None else [chunk for chunk in found if chunk.document in scope.documents]
    return within[:limit]
