"""Recipes of MemoRAG as named constants, with an ablation for each kind of clue.

Sources: the paper (Qian et al., WWW 2025) and its official code (`qhjqhj00/MemoRAG`). Gists that any chat model writes
stand for the paper's compressed memory: its code does so where no trained memory model is used (MemoRAG-Lite).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field

from hgmem.retrieval.clues import ClueKind
from hgmem.retrieval.step_evidence import Count, Positive, Reranked
from hgmem.systems.gists import recipes as gists
from hgmem.systems.gists.recipes import GistsConfig, Tokens
from hgmem.text.identity import CORPUS_NAME

MEMORIES = ("gists", "full", "none")  # beside those that other packages register


def registered() -> Mapping[str, EntryPoint]:
    """Return the memories of other packages by name, those that can be chosen by it."""
    return {name: point for name, point in found().items() if _allowed(name)}


def ignored() -> Sequence[str]:
    """Return the names of other packages' memories that cannot be chosen: hgmem's own, and paths."""
    return sorted(name for name in found() if not _allowed(name))


@cache
def found() -> Mapping[str, EntryPoint]:
    """Return all memories of other packages by name."""
    return {point.name: point for point in entry_points(group="hgmem.memories")}


def _allowed(name: str) -> bool:
    return name not in MEMORIES and re.fullmatch(CORPUS_NAME, name) is not None


def _known(name: str) -> str:
    if name not in MEMORIES and name not in registered():
        others = (*MEMORIES, *sorted(registered()))
        known = f"unknown memory {name!r}: choose one of {', '.join(others)}, or install the package that has it"
        bad = f"; ignored are {', '.join(map(repr, ignored()))}: names must match {CORPUS_NAME} and not be hgmem's own"
        raise ValueError(known + (bad if ignored() else ""))
    return name


MemorySource: TypeAlias = Annotated[str, AfterValidator(_known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoRAGConfig(GistsConfig):
    """Options of the clues and of the evidence, and those of the gists that clues are written from.

    `kinds` of clues: a rough answer (`draft`), passages that the text probably has (`spans`, the paper's recall),
    sharper questions (`queries`, its surrogate queries) and `key_points`. Without any, the question alone searches.
    `memory` is what they are written from: the gists, the whole text, nothing, or a memory of another package.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    memory: MemorySource = "gists"
    kinds: tuple[ClueKind, ...] = ("draft", "spans", "queries", "key_points")
    calls: Literal["few", "paper"] = "few"  # one call for all kinds, or one for each (official code)
    descents: Annotated[int, Field(ge=0, le=2)] = 2  # further calls that look into gists a level down
    most_clues: Positive = 8  # of a kind
    shortest: Count = 2  # words that a clue has at least (official code: 4)
    hits: Positive = 3  # chunks that each clue, and the question, brings (paper and official code)
    chunk_search: Literal["hybrid", "vector"] = "hybrid"
    titles: bool = True  # words of a document's title count in each of its chunks
    evidence_tokens: Tokens = 6_000  # of the chunks in the answer's prompt (official code: no limit)
    rerank: Reranked = 0  # chunks that a reranker orders by the question, where not all that were found have room
    fill: bool = True  # the question's next chunks take the room that clues leave (paper and official code: none do)
    chunk_tokens: Count = 0  # of the chunks that the corpus should have (paper: at most 512); 0: any
    clue_tokens: Count = 0  # new tokens of a call for clues (official code: 128); 0: as HGMEM_MAX_TOKENS says
    form: str = ""  # how the answer is to look, such as "one paragraph"

    @property
    def own(self) -> bool:
        """Whether the memory is another package's."""
        return self.memory not in MEMORIES

    @property
    def gists(self) -> GistsConfig:
        """The options of the gists alone."""
        return GistsConfig(**{one.name: getattr(self, one.name) for one in fields(GistsConfig)})


DEFAULT = MemoRAGConfig()
"""Clues of all kinds by one call, hybrid search, evidence that fills a budget."""

PAPER = MemoRAGConfig(
    **asdict(gists.PAPER),
    kinds=("spans", "queries"),
    calls="paper",
    descents=0,
    most_clues=10_000,
    shortest=4,
    chunk_search="vector",
    evidence_tokens=1_000_000,
    fill=False,
    chunk_tokens=512,
    clue_tokens=128,
)
"""The paper: its gists, a call for each kind of clue, three dense hits of up to 512 tokens for each, no limit of the
evidence, greedy decoding. The draft answer is off, and clues have 128 tokens, as in the code."""

LITE = replace(PAPER, **asdict(gists.LITE))
"""MemoRAG-Lite's code: its gists, joined."""

FULL = replace(DEFAULT, memory="full", memory_tokens=100_000)
"""The whole text as its own memory, where it fits. Needs no build."""

RECIPES: Mapping[str, MemoRAGConfig] = {
    "default": DEFAULT,
    "paper": PAPER,
    "lite": LITE,
    "full": FULL,
    "question-only": replace(DEFAULT, kinds=()),
    "spans-only": replace(DEFAULT, kinds=("spans",)),
    "queries-only": replace(DEFAULT, kinds=("queries",)),
    "draft-only": replace(DEFAULT, kinds=("draft",)),
    "no-memory": replace(DEFAULT, memory="none"),
}
"""Recipes by name. The last five are ablations: `DEFAULT` with one option changed."""
