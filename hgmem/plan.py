"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hgmem.model import Entity, Judgement, MemoryPoint


class Concern(BaseModel):
    """What is still wanted; `points` are indices of the rendered memory to dig into, from 0."""

    model_config = ConfigDict(frozen=True)
    text: str
    points: tuple[int, ...] = ()


class PlanReply(BaseModel):
    """The judgement, and the concerns that it leaves."""

    model_config = ConfigDict(frozen=True)
    judgement: Judgement
    concerns: tuple[Concern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ask whether memory answers the question; `hints` are entities next to memory but not in it."""

    question: str
    points: tuple[MemoryPoint, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: Annotated[int, Field(gt=0)] = 3
    name = "plan"
    reply_type = PlanReply


class SubqueriesReply(BaseModel):
    """One sub-query a concern, in the order of the concerns."""

    model_config = ConfigDict(frozen=True)
    subqueries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    points: tuple[MemoryPoint, ...]
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    name = "subqueries"
    reply_type = SubqueriesReply
