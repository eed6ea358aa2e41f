"""Systems: ways of remembering and answering. Each is one file here, given `Services` and nothing else."""

from collections.abc import Mapping
from typing import Any, Protocol

from hgmem.errors import UsageError
from hgmem.model import Answer
from hgmem.services import Services
from hgmem.systems.hgmem import HGMemSystem
from hgmem.systems.naive import NaiveSystem


class System(Protocol):
    """One way of answering a question over a corpus."""

    def answer(self, services: Services, question: str) -> Answer:
        """Return the answer, its memory written to Neo4j."""


SYSTEMS: Mapping[str, Any] = {"hgmem": HGMemSystem, "naive": NaiveSystem}


def system(name: str, *, steps: int | None = None) -> System:
    """Return the system of this name; `steps` is the most steps of those that take several."""
    if name not in SYSTEMS:
        raise UsageError(f"there is no system {name!r}: choose one of {', '.join(sorted(SYSTEMS))}")
    made: System = SYSTEMS[name].configured(steps=steps)
    return made
