"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.extractive.plan import PlanContext, plan
from hgmem.systems.hgmem.extractive.subqueries import subqueries
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import Concern, PlanReply, SubqueriesReply
from hgmem.values.graph_elements import Entity

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ask whether memory answers the question. `hints` are neighbours of memory's entities."""

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    strategies: Strategies = "adaptive"
    language: str = ""
    name: ClassVar[str] = "plan"
    prompt_file: ClassVar[Path] = PROMPTS / "plan.md"
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

    def extractive(self, vectors: VectorCache) -> PlanReply:
        """Return what memory does not cover of the question, without a language model."""
        return plan(_context(self), concerns=self.concerns, vectors=vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    memory: Shown
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    name: ClassVar[str] = "subqueries"
    prompt_file: ClassVar[Path] = PROMPTS / "subqueries.md"
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

    def extractive(self, _: VectorCache) -> SubqueriesReply:
        """Return the concerns as sub-queries, none asked before, without a language model."""
        return subqueries(_context(self), self.concerns)


def _context(task: Plan | Subqueries) -> PlanContext:
    return PlanContext(question=task.question, points=task.memory.points, previous=task.previous, hints=task.hints)


def _about(concern: Concern, shown: int) -> str:
    """Return a concern with the numbers of its points, as far as so many points have them."""
    points = ", ".join(str(at) for at in dict.fromkeys(concern.points) if 0 <= at < shown)
    return f"{concern.text} (points: {points})" if points else concern.text


def judging(strategies: Strategies) -> str:
    """Return the sentence of a prompt that says which judgements there are."""
    return _JUDGING[strategies]
