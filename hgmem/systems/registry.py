"""The systems by name. Each has a room here, and is given `Services` and a question."""

from collections.abc import Callable, Mapping
from typing import Protocol

from hgmem.errors import UsageError
from hgmem.services import Services
from hgmem.systems.hgmem.loop import HGMemSystem
from hgmem.systems.hgmem.recipes import HGMemConfig, recipe
from hgmem.systems.naive.answer import NaiveConfig, NaiveSystem
from hgmem.values.inputs import Question
from hgmem.values.records import Answer


class System(Protocol):
    """One way of answering a question over a corpus."""

    def answer(self, services: Services, question: Question) -> Answer:
        """Return the answer, its memory written to Neo4j."""


Recipe = str | HGMemConfig | None


def system(name: str, *, recipe: Recipe = None, changes: Mapping[str, object] | None = None) -> System:
    """Return the system of this name, configured by a recipe (or its name) and single options."""
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}: choose one of {', '.join(sorted(SYSTEMS))}")
    return SYSTEMS[name](recipe, changes or {})


def _hgmem(chosen: Recipe, changes: Mapping[str, object]) -> System:
    if not isinstance(chosen, str | HGMemConfig | None):
        raise UsageError(
            f"a recipe must be a name or an HGMemConfig, not {type(chosen).__name__}: pass single options as settings="
        )
    return HGMemSystem(recipe=recipe(chosen) if isinstance(chosen, str) else chosen, changes=changes)


def _naive(chosen: Recipe, changes: Mapping[str, object]) -> System:
    if chosen is not None or changes.keys() - {"steps", "chunks"}:  # it always takes one step
        raise UsageError(
            "system 'naive' has no recipes and only the option 'chunks': omit the others, or use system 'hgmem'"
        )
    chunks = changes.get("chunks", NaiveConfig().chunks)
    if not isinstance(chunks, int) or chunks < 1:
        raise UsageError(f"system 'naive' has invalid chunks={chunks!r}: use an integer of at least 1")
    return NaiveSystem(config=NaiveConfig(chunks=chunks))


SYSTEMS: Mapping[str, Callable[[Recipe, Mapping[str, object]], System]] = {"hgmem": _hgmem, "naive": _naive}
