"""Naive retrieval: the chunks nearest to the question, one answer. The first baseline."""

from dataclasses import dataclass

from pydantic import ConfigDict

from hgmem.graph.retrieval import Scope, near_chunks
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST, Positive
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveConfig:
    """How many chunks the answer is drawn from, and how many candidates the index proposes for them."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    chunks: Positive = 10
    over: Positive = PROPOSED_NEAREST


def retrieve(services: Services, question: str, *, scope: Scope, config: NaiveConfig) -> Evidence:
    """Return the chunks nearest to the question."""
    query = services.embed([question], kind="query")[0]
    over = max(config.over, config.chunks)
    found = near_chunks(services.database, scope=scope, query=query, k=config.chunks, over=over)
    return evidence_of(question, found)


SPEC = SingleStep(
    name="naive",
    summary="Answers from the chunks most similar to the question, and creates no points.",
    config=NaiveConfig,
    retrieve=retrieve,
    passage_option="chunks",
).spec
