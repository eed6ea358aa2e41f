"""Typed wrappers for `cypher/painting.cypher`."""

from dataclasses import dataclass

from hgmem.graph.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """What can be drawn of a memory.

    `lives` are the birth and death steps of points that involve entities; `births` are the steps in which points were
    born. Each flag says whether the picture of that name shows anything.
    """

    lives: tuple[tuple[int, int | None], ...] = ()
    births: tuple[int, ...] = ()
    lineage: bool = False
    evidence: bool = False
    bridges: bool = False
    uncovered: bool = False
    overview: bool = False
    classes: bool = False
    difference: bool = False

    def has_active_points(self, step: int) -> bool:
        """Return whether any point that involves entities is active at the end of a step."""
        return any(born <= step and (died is None or died > step) for born, died in self.lives)


def pictured(database: Database, *, corpus: str, memory: str) -> Pictured:
    """Return what can be drawn of a memory, or an empty `Pictured` if it was deleted."""
    rows = database.run("pictured", corpus=corpus, memory=memory)
    if not rows:
        return Pictured()
    row = rows[0]
    lives = tuple((born, died) for born, died in row.pop("lives"))
    return Pictured(lives=lives, births=tuple(row.pop("births")), **row)
