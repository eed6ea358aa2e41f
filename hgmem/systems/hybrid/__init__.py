"""Hybrid search: BM25 and vectors, fused by reciprocal rank, one answer. The strongest plain baseline."""

from hgmem.systems.hybrid.answer import HybridConfig, retrieve
from hgmem.systems.single_step import SingleStep

SPEC = SingleStep(
    name="hybrid",
    summary="Answers from the chunks that BM25 and vectors rank best together, and creates no points.",
    config=HybridConfig,
    retrieve=retrieve,
    passage_option="chunks",
).spec
