"""Several tasks of a step in one call, for fewer calls and shorter prompts (recipes `COMPACT` and `SINGLE`)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import EvolveReply, Inquiry, MergeAndPlanReply, PlanReply, StepReply
from hgmem.systems.hgmem.tasks.memory_changes import Evolve, Merge, UpdateRule, updating
from hgmem.systems.hgmem.tasks.planning import Plan, Strategies, Subqueries, judging
from hgmem.text.identity import key
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity
from hgmem.values.records import MemoryPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAndPlan:
    """Ask for merges, plan and sub-queries in one call: `Merge`, `Plan` and `Subqueries` together."""

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    merging: bool = True
    strategies: Strategies = "adaptive"
    language: str = ""
    name: ClassVar[str] = "merge_and_plan"
    prompt_file: ClassVar[Path] = PROMPTS / "merge_and_plan.md"
    reply_type: ClassVar[type[MergeAndPlanReply]] = MergeAndPlanReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
            "concerns": str(self.concerns),
            "merging": _merging(self.merging),
            "judging": judging(self.strategies),
            "language": rendering.language(self.language),
        }

    def extractive(self, vectors: VectorCache) -> MergeAndPlanReply:
        """Return merges, judgement and concerns, all with the numbers of the points shown."""
        merge = Merge(question=self.question, memory=self.memory)
        merged = merge.extractive(vectors).merge if self.merging else ()
        planned, concerns = _planned(self, self.memory, vectors)
        return MergeAndPlanReply(merge=merged, judgement=planned.judgement, concerns=concerns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeStep:
    """Ask for a whole step in one call: `Evolve`, `Merge`, `Plan` and `Subqueries` together.

    `planning` is false on the last step, which asks for operations and merges alone.
    """

    question: str
    subqueries: tuple[str, ...]
    memory: Shown
    evidence: Evidence
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    merging: bool = True
    planning: bool = True
    strategies: Strategies = "adaptive"
    update: UpdateRule = "unite"
    language: str = ""
    name: ClassVar[str] = "step"
    prompt_file: ClassVar[Path] = PROMPTS / "step.md"
    reply_type: ClassVar[type[StepReply]] = StepReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        last = '"sufficient", and no concerns: this was the last round.'
        return {
            "question": rendering.text(self.question),
            "subqueries": rendering.asked(self.subqueries),
            "memory": rendering.memory(self.memory),
            "evidence": rendering.evidence(self.evidence),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
            "concerns": str(self.concerns),
            "updating": updating(self.update),
            "merging": _merging(self.merging),
            "judging": judging(self.strategies) if self.planning else last,
            "language": rendering.language(self.language),
        }

    def extractive(self, vectors: VectorCache) -> StepReply:
        """Return what the evidence adds, then merges, judgement and what to ask of memory as it is with that."""
        evolve = Evolve(question=self.question, subqueries=self.subqueries, memory=self.memory, evidence=self.evidence)
        evolved = evolve.extractive(vectors)
        after = Shown(points=_after(self.memory.points, evolved))
        merge = Merge(question=self.question, memory=after)
        merged = merge.extractive(vectors).merge if self.merging else ()
        if not self.planning:
            return StepReply(update=evolved.update, insert=evolved.insert, merge=merged)
        asked = replace(self, previous=(*self.previous, *self.subqueries))
        planned, concerns = _planned(asked, after, vectors)
        return StepReply(
            update=evolved.update, insert=evolved.insert, merge=merged, judgement=planned.judgement, concerns=concerns
        )


def _merging(allowed: bool) -> str:
    return (
        "Merge where it helps."
        if allowed
        else "Points are not merged in this round: leave `merge` empty, other than in examples."
    )


def _planned(
    task: MergeAndPlan | WholeStep, memory: Shown, vectors: VectorCache
) -> tuple[PlanReply, tuple[Inquiry, ...]]:
    """Return the plan for this memory, and its concerns with their sub-queries."""
    plan = Plan(question=task.question, memory=memory, previous=task.previous, hints=task.hints, concerns=task.concerns)
    planned = plan.extractive(vectors)
    subqueries = Subqueries(
        question=task.question, memory=memory, concerns=planned.concerns, previous=task.previous, hints=task.hints
    )
    texts = subqueries.extractive(vectors).subqueries
    return planned, tuple(
        Inquiry(text=concern.text, subquery=text, points=concern.points)
        for concern, text in zip(planned.concerns, texts, strict=True)
    )


def _after(points: tuple[MemoryPoint, ...], evolved: EvolveReply) -> tuple[MemoryPoint, ...]:
    """Return the points as they read after the updates, those inserted behind them."""
    changed = list(points)
    for revision in evolved.update:
        old = changed[revision.point]
        added = tuple(_named(name) for name in revision.entities)
        changed[revision.point] = replace(old, description=revision.description, entities=(*old.entities, *added))
    inserted = (
        MemoryPoint(uid=f"new-{at}", description=one.description, entities=tuple(map(_named, one.entities)))
        for at, one in enumerate(evolved.insert)
    )
    return (*changed, *inserted)


def _named(name: str) -> Entity:
    return Entity(uid=key(name), name=name)
