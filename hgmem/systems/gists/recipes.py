"""Options of the pyramid of gists, with the sizes of the paper that has them, and of its code.

Sources: Qian et al., WWW 2025, and the code of its variant without a trained model, which writes gists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field

Tokens: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]
Ratio: TypeAlias = Annotated[float, Field(ge=2, le=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GistsConfig:
    """How gists are made. A system that asks for gists of some size has these options among its own."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    passage_tokens: Annotated[int, Field(ge=64, le=200_000)] = 4_096  # about what a gist is written of (code)
    ratio: Ratio = 8  # tokens read for each token of a gist (paper, section 2.3.1: β = l / k, of tokens in a cache)
    memory_tokens: Tokens = 8_000  # of the gists in a prompt: levels are built until one fits
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None  # of all calls (paper: greedy); HGMEM_TEMPERATURE

    @property
    def gist_tokens(self) -> int:
        """The tokens of a gist of a whole passage."""
        return max(1, round(self.passage_tokens / self.ratio))


DEFAULT = GistsConfig()
"""Gists of an eighth of the text, condensed again until they fit into 8,000 tokens."""

PAPER = GistsConfig(passage_tokens=2_048, ratio=4, memory_tokens=32_000, temperature=0)
"""The paper: window 2,048 and β = 4 (appendix A), a memory that a window of 128K tokens holds at β = 4, greedy."""

LITE = GistsConfig(passage_tokens=4_096, ratio=8, memory_tokens=128_000, temperature=0)
"""The code: gists of at most 512 tokens of 4,096, joined. Here they are condensed again from 128,000 tokens on, where
the code has no limit."""

RECIPES: Mapping[str, GistsConfig] = {"default": DEFAULT, "paper": PAPER, "lite": LITE}
"""Recipes by name."""
