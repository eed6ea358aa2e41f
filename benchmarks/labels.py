"""The systems' names and their order in all tables and plots; a system that you add comes last."""

from collections.abc import Iterable

from workloads import FULL

LABELS = {"product": "hgmem", "graphrag_broad": "graphrag, asked as broadly"}  # the others keep their names


def ordered(systems: Iterable[str]) -> list[str]:
    """Return the systems, each once."""
    there = set(systems)
    return [name for name in FULL if name in there] + sorted(there.difference(FULL))


def label(name: str) -> str:
    """Return the name for tables and plots."""
    return LABELS.get(name, name)
