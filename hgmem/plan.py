"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from hgmem import rendering
from hgmem.model import Entity, Judgement
from hgmem.rendering import Shown
from hgmem.reply import Reply

Strategies: TypeAlias = Literal["adaptive", "local", "global"]

_JUDGING: Mapping[Strategies, str] = {
    "adaptive": (
        '"sufficient" if memory answers the question as a whole; "local" if points of memory have to be looked into '
        'more closely, which the concerns then name; "global" if all that is missing is something that memory does '
        "not touch yet."
    ),
    "local": (
        '"sufficient" if memory answers the question as a whole, else "local": each concern names points of '
        "memory that have to be looked into more closely."
    ),
    "global": (
        '"sufficient" if memory answers the question as a whole, else "global": each concern is something that '
        "memory does not touch yet, and names no points."
    ),
}


class Concern(BaseModel):
    """What is still wanted; `points` are indices of the memory shown to dig into, from 0."""

    model_config = ConfigDict(frozen=True)
    text: str
    points: tuple[int, ...] = ()


class PlanReply(Reply):
    """The judgement, and the concerns that it leaves."""

    judgement: Judgement
    concerns: tuple[Concern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ask whether memory answers the question; `hints` are entities next to memory but not in it."""

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    strategies: Strategies = "adaptive"
    language: str = ""
    name: ClassVar[str] = "plan"
    reply_type: ClassVar[type[PlanReply]] = PlanReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
            "concerns": str(self.concerns),
            "judging": judging(self.strategies),
            "language": rendering.language(self.language),
        }


class SubqueriesReply(Reply):
    """One sub-query a concern, in the order of the concerns."""

    subqueries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    memory: Shown
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    name: ClassVar[str] = "subqueries"
    reply_type: ClassVar[type[SubqueriesReply]] = SubqueriesReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "concerns": rendering.listed(_about(one, len(self.memory.points)) for one in self.concerns),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
        }


class Inquiry(BaseModel):
    """A concern with the sub-query that asks for it."""

    model_config = ConfigDict(frozen=True)
    text: str
    subquery: str
    points: tuple[int, ...] = ()


def _about(concern: Concern, shown: int) -> str:
    """Return a concern with the numbers of its points, as far as so many points have them."""
    points = ", ".join(str(at) for at in dict.fromkeys(concern.points) if 0 <= at < shown)
    return f"{concern.text} (points: {points})" if points else concern.text


def judging(strategies: Strategies) -> str:
    """Return the sentence of a prompt that says which judgements there are."""
    return _JUDGING[strategies]
