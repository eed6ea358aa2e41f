"""What systems are called, and the order in which all tables and plots have them; one of your own comes last."""

from collections.abc import Iterable

from workloads import FULL

LABELS = {"product": "hgmem", "graphrag_broad": "graphrag, asked as broadly"}  # others are called what they are


def ordered(systems: Iterable[str]) -> list[str]:
    """Return the systems, each once."""
    there = set(systems)
    return [name for name in FULL if name in there] + sorted(there.difference(FULL))


def label(name: str) -> str:
    """Return what a person reads."""
    return LABELS.get(name, name)
