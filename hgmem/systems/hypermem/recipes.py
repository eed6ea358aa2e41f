"""Recipes of HyperMem as named constants, with its ablations.

Sources: the paper (arXiv 2604.08256, ACL 2026), read in a digest and cited by its headings, and its official code
(`EverMind-AI/HyperMem`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field

from hgmem.retrieval.step_evidence import Count, Positive, Reranked
from hgmem.systems.hypermem.dialogues import until
from hgmem.text.segmentation import collapse

Shown: TypeAlias = Literal["facts", "episodes", "messages"]
Level: TypeAlias = Literal["topics", "episodes", "facts"]
Tokens: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000)]

WINDOW = 30  # messages that one call divides into episodes, where calls are few
LONGEST_TOPIC = 15  # episodes (official code)
TOLD_FACTS = 30  # facts that the answer is told (paper: k_F)
TOLD_TOKENS = 8_000  # of facts and narratives in the answer's prompt (official code: no limit)
UNBUILT_TOKENS = 2_000  # of the newest messages that no episode holds yet, in the answer's prompt


Until: TypeAlias = Annotated[str, AfterValidator(until)]
Name: TypeAlias = Annotated[str, AfterValidator(collapse)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperMemConfig:
    """Options of the build (up to `propagation`), of the search, and of what the answer is shown.

    `levels` are searched from the top down, each within what the one above left; without one, the next level is
    searched as a whole. `as_of` (ISO 8601) leaves out what was said later or at an unknown time, `speaker` what others
    said.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    calls: Literal["few", "paper"] = "few"  # what one call asks for: all of an episode, or one thing (official code)
    longest_episode: Annotated[int, Field(ge=2, le=1_000)] = 30  # messages, where together (code: 3 to 20 exchanges)
    shortlist: Count = 10  # earlier episodes whose topics an episode may join (paper); 0: all topics (official code)
    span: Literal["conversation", "corpus"] = "conversation"  # where the episodes of a topic come from
    ledger: bool = True  # one call an episode says which facts change earlier ones (paper: none)
    propagation: Annotated[float, Field(ge=0, le=10)] = 0.5  # λ (paper, Loss & Training; code: alpha); 0: none

    levels: tuple[Level, ...] = ("topics", "episodes", "facts")
    topics: Positive = 30  # k_T (paper: 10)
    episodes: Positive = 100  # k_E (paper: 10)
    facts: Positive = 300  # k_F (paper: 30)
    inherit: Annotated[float, Field(ge=0, le=10)] = 1  # weight of the rank of the row above in a row's (paper: none)
    rerank: Reranked = 0  # rows of each level that a reranker reads (paper: by Qwen3-Reranker-4B)
    chunk_search: Annotated[float, Field(ge=0, le=10)] = 1  # weight of a search of messages (paper: 0)
    titles: bool = True  # words of a conversation's title count in that search
    as_of: Until = ""
    speaker: Name = ""

    show: tuple[Shown, ...] = ("facts", "episodes", "messages")
    evidence_tokens: Tokens = 4_500  # of facts, narratives and messages in the answer's prompt
    form: str = ""  # how the answer is to look, such as "a few words"


DEFAULT = HyperMemConfig()
"""Few calls, and messages as evidence, ranked by the facts and episodes that rest on them."""

PAPER = HyperMemConfig(
    calls="paper",
    longest_episode=1_000,
    ledger=False,
    topics=10,
    episodes=10,
    facts=30,
    inherit=0,
    chunk_search=0,
    show=("facts", "episodes"),
    evidence_tokens=0,
)
"""The paper: 10/10/30, λ = 0.5, narratives and facts as the context, by the official code's call for each message and
thing. The paper's reranker is off unless `rerank` asks for it."""

CODE = replace(PAPER, shortlist=0)
"""What the official code's `run_eval.sh` runs: 10/10/30 without a reranker, a match against all topics of a
conversation."""

_NO_TOPICS: tuple[Level, ...] = ("episodes", "facts")
_FACTS_ALONE: tuple[Level, ...] = ("facts",)

RECIPES: Mapping[str, HyperMemConfig] = {
    "default": DEFAULT,
    "paper": PAPER,
    "code": CODE,
    "no-topics": replace(DEFAULT, levels=_NO_TOPICS),
    "no-topics-no-episodes": replace(DEFAULT, levels=_FACTS_ALONE),
    "no-fact-context": replace(DEFAULT, show=("messages",)),
    "no-chunk-search": replace(DEFAULT, chunk_search=0),
    "no-ledger": replace(DEFAULT, ledger=False),
    "no-propagation": replace(DEFAULT, propagation=0),
    "paper-no-fact-context": replace(PAPER, show=("episodes",)),
    "paper-no-episode-context": replace(PAPER, show=("facts",)),
    "paper-no-topics": replace(PAPER, levels=_NO_TOPICS),
    "paper-no-topics-no-fact-context": replace(PAPER, levels=_NO_TOPICS, show=("episodes",)),
    "paper-no-topics-no-episode-context": replace(PAPER, levels=_NO_TOPICS, show=("facts",)),
    "paper-no-topics-no-episodes": replace(PAPER, levels=_FACTS_ALONE),
    "paper-no-propagation": replace(PAPER, propagation=0),
}
"""Recipes by name. Those that begin with `no-` are ablations of the default, those with `paper-no-` of the paper, whose
table has all of these but the last. Each `no-propagation`, and `no-ledger`, needs a build of its own."""
