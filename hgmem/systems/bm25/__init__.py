"""BM25: the chunks whose words fit the question best, one answer. The lexical baseline."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from hgmem.graph.full_text import Ranking, worded_chunks
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import Positive
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Config:
    """How many chunks the answer is drawn from, and BM25's parameters (Robertson and Zaragoza, 2009, section 3).

    k1 and b are those of the library bm25s, within what Manning et al. (2008, section 11.4.3) recommend untuned.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    chunks: Positive = 10
    k1: Annotated[float, Field(ge=0, le=100)] = 1.5  # how soon repeats of a word stop counting: 0 ignores them
    b: Annotated[float, Field(ge=0, le=1)] = 0.75  # how much a long chunk is discounted: 0 not at all, 1 fully
    over: Positive = 10_000  # chunks that the index proposes: ranks are exact where fewer hold a word of the question


def retrieve(services: Services, question: str, *, scope: Scope, config: Bm25Config) -> Evidence:
    """Return the chunks that fit the words of the question best, none if it has no words."""
    ranking = Ranking(k=config.chunks, over=max(config.over, config.chunks), k1=config.k1, b=config.b)
    found = worded_chunks(services.database, scope=scope, text=question, ranking=ranking)
    return evidence_of(question, found, strategy="words")


SPEC = SingleStep(
    name="bm25",
    summary="Answers from the chunks whose words fit the question best (BM25), and creates no points.",
    config=Bm25Config,
    retrieve=retrieve,
    passage_option="chunks",
).spec
