"""Memory: how a reply inserts, revises and merges points (paper, section 3.2 and equation 8)."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from hgmem.model import Evidence, MemoryPoint


class Insertion(BaseModel):
    """A new point: the names that it ties, and the evidence chunks (indices, from 0) that support it."""

    model_config = ConfigDict(frozen=True)
    entities: tuple[str, ...]
    description: str
    chunks: tuple[int, ...] = ()


class Revision(BaseModel):
    """A point said better; `entities` and `chunks` are added to what the point has."""

    model_config = ConfigDict(frozen=True)
    point: int
    description: str
    entities: tuple[str, ...] = ()
    chunks: tuple[int, ...] = ()


class EvolveReply(BaseModel):
    """What the evidence adds to memory."""

    model_config = ConfigDict(frozen=True)
    update: tuple[Revision, ...] = ()
    insert: tuple[Insertion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolve:
    """Ask what the evidence of a step adds to memory; indices refer to `points` and `evidence.chunks`."""

    question: str
    subqueries: tuple[str, ...]
    points: tuple[MemoryPoint, ...]
    evidence: Evidence
    name = "evolve"
    reply_type = EvolveReply


class Joining(BaseModel):
    """Two or more points said as one."""

    model_config = ConfigDict(frozen=True)
    points: tuple[int, ...]
    description: str


class MergeReply(BaseModel):
    """Which points belong together."""

    model_config = ConfigDict(frozen=True)
    merge: tuple[Joining, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Ask which points to merge; indices refer to `points`."""

    question: str
    points: tuple[MemoryPoint, ...]
    name = "merge"
    reply_type = MergeReply
