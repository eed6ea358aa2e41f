"""Hybrid search: BM25 and vectors, fused by reciprocal rank, one answer. The strongest plain baseline."""

from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import hybrid_chunks, rerank_chunks
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, WordsConfig, evidence_of
from hgmem.values.evidence import Evidence

DEPTH = 100  # chunks that each ranking brings to their fusion


def retrieve(services: Services, question: str, *, scope: Scope, config: WordsConfig) -> Evidence:
    """Return the chunks that rank best by words and by vector together."""
    query = services.embed([question], kind="query")[0]
    ranking = Ranking(k=max(DEPTH, config.searched), titles=config.titles)
    found = hybrid_chunks(services.database, (question, query), scope=scope, ranking=ranking)
    best = rerank_chunks(services, question, found, most=config.rerank)[: config.chunks]
    return evidence_of(question, best, strategy="words and vector")


SPEC = SingleStep(
    name="hybrid",
    summary="Answers from the chunks that BM25 and vectors rank best together, and creates no points.",
    config=WordsConfig,
    retrieve=retrieve,
    passage_option="chunks",
)
