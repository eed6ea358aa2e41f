"""Recipes of HGMem as named constants, with a field for each ablation of the paper.

Sources: the paper (HGMem, 2025, arXiv 2512.23959), sections 3, 4.2, 5.2 and 5.3, and its official code
(`Encyclomen/HGMem`). Version A of the paper has equations 1 to 8, version B 1 to 3 (docs/papers.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pydantic import ConfigDict

from hgmem.retrieval.clues import ClueKind
from hgmem.retrieval.step_evidence import Count, Positive, Reranked, RetrievalConfig
from hgmem.systems.hgmem.tasks import ADDITIONS, Addition, Judging, MergeRule, Strategies, UpdateRule

Calls: TypeAlias = Literal["separate", "whole"]
AnswerFrom: TypeAlias = Literal["read", "memory", "around"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HGMemConfig:
    """Options of an investigation: steps, calls, retrieval, memory and answer. The paper's t is 0 to `steps` − 1.

    `answer_from` selects the chunks for the answer: those that active points rest on, a chunk of every finding first
    (docs/decisions/0021), and then others that were `read`, by rank (docs/decisions/0017); the chunks of V_M nearest to
    the question (`memory`, the paper); or the chunks read `around` each point (the official code).
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    clues: tuple[ClueKind, ...] = ()  # what a first look at the corpus writes to search by; without any, there is none
    most_clues: Positive = 8  # of a kind
    overview_tokens: Count = 4_000  # of what the first look sees: gists where they are built, titles, entities
    steps: Positive = 3  # the most new steps of one question (paper: best at t = 3, four steps; section 5.2)
    concerns: Positive = 3  # the most concerns, and so sub-queries, of one plan
    calls: Calls = "separate"  # evolve, merge, plan, sub-queries each by itself (paper), or a whole step in one call
    strategies: Strategies = "adaptive"  # the paper's ablations: local alone, global alone (section 5.3)
    judging: Judging = "step"  # a plan is local or global as a whole (paper's prompt, code), or each of its concerns is
    update: UpdateRule = "unite"  # what an update does to a point's entities; off is the paper's ablation
    merge: MergeRule = "replace"  # whether a merged point stands for its parts or beside them; off is the ablation
    additions: tuple[Addition, ...] = ADDITIONS  # rules beside the paper's, in prompts and in what becomes of replies
    describe: bool = False  # names and pairs that the corpus lacks are described by calls of their own
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    later_chunks: Count = 0  # that each sub-query after the first step searches for at most; 0: as many as in the first
    bearing: bool = False  # chunks found after the first step are left out where they bear on none of its sub-queries
    rerank: Reranked = 0  # chunks of each sub-query, and of the answer beside findings', that a reranker orders
    only_new: bool = False  # a step's prompt leaves out what memory holds and what an earlier one has shown
    evidence_tokens: Count = 8_000  # of the chunks in a step's prompt
    memory_tokens: Positive = 6_000  # of the points in a prompt: targets first, then the newest
    hints: Count = 5  # entities beside memory that a plan is told of (official code; paper: none)
    describe_hints: bool = True  # hints with descriptions, the same in each round (official code), or names told once
    titles: Count = 0  # of unread documents that a plan is told of, beside those that were read
    answer_from: AnswerFrom = "read"
    answer_chunks: Positive = 50  # of the answer at most (the official code's value)
    answer_tokens: Positive = 10_000  # of the answer's chunks (the official code's value)
    read_tokens: Count = 10_000  # up to which chunks that no point rests on join an answer from what was found
    answer_each_step: bool = False
    form: str = ""  # how the answer is to look, such as "one paragraph"


DEFAULT = HGMemConfig(
    clues=("spans", "queries"),
    calls="whole",
    judging="concern",
    retrieval=RetrievalConfig(entities=1, relations=0, searched_chunks=20, beside=4),
    later_chunks=8,
    bearing=True,
    only_new=True,
    evidence_tokens=4_500,
    describe_hints=False,
    titles=5,
    answer_tokens=6_000,
    read_tokens=1_500,
)
"""A broad first look, then passages before lines, and a whole step in one call (docs/decisions/0033).

Beside these an update unites entities (docs/decisions/0002), a merged point replaces its parts, each concern is local
or global by itself (docs/decisions/0022), and the plan sees documents and entities next to memory."""

PAPER = HGMemConfig(
    steps=4,
    update="keep",
    merge="add",
    additions=(),
    describe=True,
    retrieval=RetrievalConfig(chunk_search="off", shared=True, hops=1, exclude=True),
    hints=0,
    answer_from="memory",
    answer_chunks=200,
)
"""The paper: t = 0…3 (section 5.2), equations 1, 6, 7 and 8 of version A, the answer from the chunks of all V_M.
Three details follow the official code: one call writes all sub-queries of a plan, merging begins at the second step,
and n_v, n_e and n_d, which the paper leaves open, have the code's values."""

CODE = HGMemConfig(
    steps=4,
    update="replace",
    additions=("one_merge",),
    describe=True,
    retrieval=RetrievalConfig(chunk_search="vector", hops=2, shared=False, pooled=True, exclude=False),
    evidence_tokens=4_000,
    memory_tokens=10_000,
    answer_from="around",
)
"""The official code where it differs from the paper: an update replaces the entities, all sub-queries share one local
scope of two hops, global exploration excludes nothing, chunk search is dense, and model calls describe new names
(docs/decisions/0030)."""

RECIPES: Mapping[str, HGMemConfig] = {
    "default": DEFAULT,
    "paper": PAPER,
    "code": CODE,
    "global-only": replace(PAPER, strategies="global"),
    "local-only": replace(PAPER, strategies="local"),
    "no-update": replace(PAPER, update="off"),
    "no-merge": replace(PAPER, merge="off"),
}
"""Recipes by name. The last four are the ablations of the paper's section 5.3: `PAPER` with one option changed."""
