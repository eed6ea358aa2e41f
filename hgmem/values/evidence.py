"""Sub-queries of a step, their hits and the resulting evidence."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hgmem.values.graph_elements import Chunk, Entity, Relation

Strategy: TypeAlias = Literal["global", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery:
    """A sub-query on one concern. `targets` are the uids of the points that a local one investigates."""

    text: str
    concern: str = ""
    strategy: Strategy = "global"
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A retrieved entity, relation or chunk: uid, rank from 1 and score (cosine in [-1, 1]).

    `name` is set for entities, `source_id` for chunks: their id in the imported data.
    """

    uid: str
    rank: int
    score: float = 0.0
    name: str = ""
    source_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """The hits of one sub-query, nearest first."""

    subquery: Subquery
    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    chunks: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of a step's sub-queries without duplicates. Chunks are ordered by document and position."""

    retrieved: tuple[Retrieved, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the step found neither entities nor chunks."""
        return not (self.entities or self.chunks)

    @property
    def strategy(self) -> Strategy:
        """How the step retrieved: locally if any of its sub-queries dug into memory points."""
        return "local" if any(one.subquery.targets for one in self.retrieved) else "global"
