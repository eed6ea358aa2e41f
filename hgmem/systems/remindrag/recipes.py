"""Recipes of ReMindRAG as named constants, with its ablations.

Sources: the paper (arXiv 2510.13193, NeurIPS 2025) and its official code (`kilgrims/ReMindRAG`). The bodies of the
paper's equations were not in the text that was read: they follow its prose and the code (docs/papers.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from hgmem.retrieval.clues import ClueKind
from hgmem.retrieval.step_evidence import Count, Positive, Reranked

Penalty: TypeAlias = Literal["fade", "forget", "shrink", "off"]
Recall: TypeAlias = Literal["touches", "vector"]
Judge: TypeAlias = Literal["cited", "model"]
Tokens: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReMindRAGConfig:
    """Options of the build (the first two), of the walk, of the trails, and of what the answer is shown.

    `calls`: one call says what was found, whether that is enough and where to go next (`few`), or one call says
    whether it is enough and another where to go (`paper`). `frontier`: a move leaves from any node that was
    visited (`all`), or from the current one, and going back is a move of its own (`current`, the paper).
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    passage_tokens: Annotated[int, Field(ge=64, le=100_000)] = 750  # of an anchor's passage (paper)
    synonym: Share = 0.7  # cosine of two names from which their entities are tied (paper: synonym threshold)

    seeds: Positive = 2  # k, nodes nearest to the question (paper)
    max_jumps: Count = 10  # nodes and passages that a walk enters at most (paper)
    max_calls: Positive = 6  # model calls of a walk at most, clues included (paper: no bound)
    calls: Literal["few", "paper"] = "few"
    frontier: Literal["all", "current"] = "all"
    moves: Positive = 3  # that one call may take, where they do not depend on each other (paper: 1)
    search: bool = True  # whether a move may search for words of the model's own (paper: it may not)
    look_tokens: Tokens = 4_000  # of the chunks that a first look reads, unless a replay is enough; 0: none (paper)
    clues: tuple[ClueKind, ...] = (
        "spans",
        "queries",
    )  # of a first look; none: the question alone (paper)
    at_once: bool = True  # a replay is answered from, unless the model says that it lacks something (paper: no)
    ways: Positive = 12  # that a prompt offers at most, those nearest to the question (paper: all)
    quotes: Count = 1  # chunks behind a relation or a seed that are read there (paper: none, its sentence alone)
    chain: bool = True  # whether the walk follows the text from passage to passage (paper: context skeleton)
    synonyms: bool = True  # whether it passes between entities of like names
    summary_tokens: Tokens = 0  # from which a passage is summarised for the question (official code: 350); 0: never

    trails: bool = True  # whether trails are used, and learnt
    replay: bool = True  # whether strong trails are followed without a call; else they only raise the scores of ways
    alpha: Share = 0.1  # α, share of the ends' own similarity in the relevance of a trail (paper, section 3.2.2)
    recall: Recall = "touches"  # a trail is scored by the learnings that touched it, or by its vector (paper)
    strong: Share = 0.5  # λ, relevance above which a trail is strong (paper: 0.55, advised are 0.5 to 0.75)
    starts: Count = 2  # learnings of near questions from whose beginnings it begins as well (paper: none)
    replay_tokens: Tokens = 4_000  # that strong trails bring to the first prompt, the strongest first (paper: no limit)
    judge: Judge = "cited"  # of use is what the answer cites, or what a model says (paper, section 3.2.1)
    penalty: Penalty = "fade"  # how a trail of no use loses its part along the question (paper, section 3.2.1)
    learn: bool = False  # whether the question is learnt once it is answered (paper, appendix B: after each walk)

    evidence_tokens: Tokens = 6_000  # of the chunks in the answer's prompt (paper: no limit)
    rerank: Reranked = 0  # chunks that a reranker orders by the question, for the room that the walk leaves
    fill: bool = True  # the question's nearest chunks take the room that a walk leaves (paper: none do)
    titles: bool = True  # words of a document's title count where these are searched
    form: str = ""  # how the answer is to look, such as "a few words"


DEFAULT = ReMindRAGConfig()
"""A broad first look, one call for several moves, searches among them, trails that are learnt on request."""

PAPER = ReMindRAGConfig(
    max_calls=60,
    calls="paper",
    frontier="current",
    moves=1,
    search=False,
    look_tokens=0,
    clues=(),
    at_once=False,
    ways=10_000,
    quotes=0,
    recall="vector",
    strong=0.55,
    starts=0,
    replay_tokens=1_000_000,
    judge="model",
    summary_tokens=350,
    penalty="shrink",
    learn=True,
    evidence_tokens=100_000,
    fill=False,
)
"""The paper: two calls a move, everything known in each prompt, and every walk learnt. Passages are summarised from 350
tokens (official code). The penalty is our reading of section 3.2.1."""

CODE = replace(PAPER, synonym=0.85, penalty="off")
"""What the official code does. Its threshold of 0.7 stands on the scale 2·cos − 1, which makes a cosine of 0.85, and
its penalty never changes a trail."""

RECIPES: Mapping[str, ReMindRAGConfig] = {
    "default": DEFAULT,
    "paper": PAPER,
    "code": CODE,
    "no-chain": replace(DEFAULT, chain=False),
    "no-replay": replace(DEFAULT, replay=False),
    "no-trails": replace(DEFAULT, trails=False),
    "no-synonyms": replace(DEFAULT, synonyms=False),
}
"""Recipes by name. Those that begin with `no-` are ablations. `code` needs a build of its own for its synonyms."""
