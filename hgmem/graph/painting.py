"""Typed twins of `cypher/painting.cypher`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """What there is to draw of a memory: `lives` are birth and death (steps) of points that tie entities.

    Each of the others says of one picture whether it shows anything; `births` are the steps in which a point was born.
    """

    lives: tuple[tuple[int, int | None], ...] = ()
    births: tuple[int, ...] = ()
    lineage: bool = False
    evidence: bool = False
    bridges: bool = False
    uncovered: bool = False
    overview: bool = False

    def alive(self, step: int) -> bool:
        """Whether any point that ties entities is alive at the end of a step."""
        return any(born <= step and (died is None or died > step) for born, died in self.lives)


def paint_entities(database: Database, *, corpus: str, kinds: Mapping[str, Sequence[str]]) -> int:
    """Return of how many entities the second label changed; `kinds` are casefolded types of entities by kind."""
    rows = database.run(
        "paint_entities",
        corpus=corpus,
        persons=list(kinds["person"]),
        organizations=list(kinds["organization"]),
        places=list(kinds["place"]),
        events=list(kinds["event"]),
    )
    return int(rows[0]["painted"])


def paint_points(database: Database, *, corpus: str) -> int:
    """Return of how many points the label of dead ones changed."""
    return int(database.run("paint_points", corpus=corpus)[0]["painted"])


def pictured(database: Database, *, corpus: str, memory: str) -> Pictured:
    """Return what there is to draw of a memory; nothing of one that was deleted meanwhile."""
    rows = database.run("pictured", corpus=corpus, memory=memory)
    if not rows:
        return Pictured()
    row = rows[0]
    lives = tuple((born, died) for born, died in row.pop("lives"))
    return Pictured(lives=lives, births=tuple(row.pop("births")), **row)
