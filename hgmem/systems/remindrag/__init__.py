"""ReMindRAG: a walk through the graph that a model guides, and trails that the graph remembers (NeurIPS 2025)."""

from pathlib import Path

from hgmem.memory.browser.favourites import favourites_in
from hgmem.systems.remindrag.answer import answer, cost
from hgmem.systems.remindrag.build import BUILD
from hgmem.systems.remindrag.recipes import RECIPES, ReMindRAGConfig
from hgmem.systems.remindrag.stored_passages import passages
from hgmem.systems.remindrag.trails import INVARIANTS
from hgmem.systems.remindrag.verbs import VERBS
from hgmem.systems.spec import SystemSpec

SPEC: SystemSpec[ReMindRAGConfig] = SystemSpec(
    name="remindrag",
    summary="Walks the graph as a model chooses, and remembers the trails that led somewhere useful.",
    config=ReMindRAGConfig,
    recipes=RECIPES,
    answer=answer,
    build=BUILD,
    cost=cost,
    steps_option="max_jumps",
    passages=passages,
    learn_option="learn",
    verbs=VERBS,
    favourites=favourites_in(Path(__file__).parent / "favourites"),
    invariants=INVARIANTS,
)
