"""Hybrid search: BM25 and vectors, fused by reciprocal rank, one answer. The strongest plain baseline."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import FUSION, Positive, hybrid_chunks
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridConfig:
    """How many chunks the answer is drawn from, and how the two rankings are made and fused."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    chunks: Positive = 10
    depth: Positive = 100  # chunks that each ranking brings to their fusion
    fusion: Annotated[float, Field(ge=0, le=10_000)] = FUSION  # k of Cormack et al. (2009): less favours first ranks
    k1: Annotated[float, Field(ge=0, le=100)] = 1.5  # BM25: how soon repeats of a word stop counting
    b: Annotated[float, Field(ge=0, le=1)] = 0.75  # BM25: how much a long chunk is discounted
    over: Positive = 10_000  # chunks that the full-text index proposes to BM25


def retrieve(services: Services, question: str, *, scope: Scope, config: HybridConfig) -> Evidence:
    """Return the chunks that rank best by words and by vector together."""
    depth = max(config.depth, config.chunks)
    query = services.embed([question], kind="query")[0]
    ranking = Ranking(k=depth, over=max(config.over, depth), k1=config.k1, b=config.b)
    found = hybrid_chunks(services.database, (question, query), scope=scope, ranking=ranking, fusion=config.fusion)
    return evidence_of(question, found[: config.chunks], strategy="words and vector")


SPEC = SingleStep(
    name="hybrid",
    summary="Answers from the chunks that BM25 and vectors rank best together, and creates no points.",
    config=HybridConfig,
    retrieve=retrieve,
    passage_option="chunks",
).spec
