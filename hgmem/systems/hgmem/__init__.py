"""HGMem: a working memory that is a hypergraph (HGMem, 2025, arXiv 2512.23959)."""

from hgmem.systems.gists.build import NAME as GISTS
from hgmem.systems.hgmem.cost import cost
from hgmem.systems.hgmem.loop import NAME, answer
from hgmem.systems.hgmem.recipes import RECIPES, HGMemConfig
from hgmem.systems.hgmem.stored_passages import passages
from hgmem.systems.spec import SystemSpec

SPEC = SystemSpec(
    name=NAME,
    summary="Builds a hypergraph memory of the question step by step, and answers from it.",
    config=HGMemConfig,
    recipes=RECIPES,
    answer=answer,
    passages=passages,
    continues=True,
    uses=lambda config: (GISTS,) if config.clues else (),  # a first look shows them where they are built
    cost=cost,
)
