"""Naive retrieval: the chunks nearest to the question, one answer. The first baseline."""

from hgmem.graph.retrieval import Scope, near_chunks
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST, rerank_chunks
from hgmem.services import Services
from hgmem.systems.single_step import ChunksConfig, SingleStep, evidence_of
from hgmem.values.evidence import Evidence


def retrieve(services: Services, question: str, *, scope: Scope, config: ChunksConfig) -> Evidence:
    """Return the chunks nearest to the question."""
    query = services.embed([question], kind="query")[0]
    over = max(PROPOSED_NEAREST, config.searched)
    found = near_chunks(services.database, scope=scope, query=query, k=config.searched, over=over)
    return evidence_of(question, rerank_chunks(services, question, found, most=config.rerank)[: config.chunks])


SPEC = SingleStep(
    name="naive",
    summary="Answers from the chunks most similar to the question, and creates no points.",
    config=ChunksConfig,
    retrieve=retrieve,
    passage_option="chunks",
)
