"""HyperMem: conversations as topics over episodes over facts, searched from the top down (ACL 2026)."""

from pathlib import Path

from hgmem.memory.browser.favourites import favourites_in
from hgmem.systems.hypermem.answer import cost, retrieve
from hgmem.systems.hypermem.build import BUILD
from hgmem.systems.hypermem.ledger import INVARIANTS
from hgmem.systems.hypermem.recipes import RECIPES, HyperMemConfig
from hgmem.systems.hypermem.verbs import VERBS
from hgmem.systems.single_step import SingleStep

SPEC = SingleStep(
    name="hypermem",
    summary="Keeps conversations as topics, episodes and facts, and searches them from the top down.",
    config=HyperMemConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    only_conversations=True,
    build=BUILD,
    cost=cost,
    verbs=VERBS,
    invariants=INVARIANTS,
    favourites=favourites_in(Path(__file__).parent / "favourites"),
)
