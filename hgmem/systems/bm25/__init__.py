"""BM25 (Robertson and Zaragoza, 2009, section 3): the chunks whose words fit the question best, one answer.

The lexical baseline.
"""

from hgmem.graph.full_text import Ranking, worded_chunks
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import rerank_chunks
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, WordsConfig, evidence_of
from hgmem.values.evidence import Evidence


def retrieve(services: Services, question: str, *, scope: Scope, config: WordsConfig) -> Evidence:
    """Return the chunks that fit the words of the question best, none if it has no words."""
    ranking = Ranking(k=config.searched, titles=config.titles)
    found = worded_chunks(services.database, scope=scope, text=question, ranking=ranking)
    best = rerank_chunks(services, question, found, most=config.rerank)[: config.chunks]
    return evidence_of(question, best, strategy="words")


SPEC = SingleStep(
    name="bm25",
    summary="Answers from the chunks whose words fit the question best (BM25), and creates no points.",
    config=WordsConfig,
    retrieve=retrieve,
    passage_option="chunks",
)
