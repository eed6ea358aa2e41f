"""Several tasks of a step in one call, for fewer calls and shorter prompts (recipes `COMPACT` and `SINGLE`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.extractive.evolve import after
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import (
    Inquiry,
    MergeAndPlanReply,
    PlanAndAskReply,
    PlanReply,
    StepReply,
    StepWithoutMergesReply,
)
from hgmem.systems.hgmem.tasks.judging import Judging, Strategies, judging_fields, narrowed
from hgmem.systems.hgmem.tasks.memory_changes import Evolve, Merge, UpdateRule, updating
from hgmem.systems.hgmem.tasks.planning import Outlook, Plan, Subqueries
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAndPlan:
    """Ask for merges, plan and sub-queries in one call: `Merge`, `Plan` and `Subqueries` together.

    Without `merging` the prompt has no word of merges.
    """

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    outlook: Outlook = field(default_factory=Outlook)
    concerns: int = 3
    merging: bool = True
    strategies: Strategies = "adaptive"
    judging: Judging = "concern"
    language: str = ""
    name: ClassVar[str] = "merge_and_plan"
    prompt_file: ClassVar[Path] = PROMPTS / "merge_and_plan.md"

    @property
    def reply_type(self) -> type[PlanAndAskReply]:
        """What the reply may hold."""
        return MergeAndPlanReply if self.merging else PlanAndAskReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            **self.outlook.fields(previous=self.previous, hints=self.hints),
            **judging_fields(self.strategies, self.judging, concerns=self.concerns, subqueries=True),
            "merging": "yes" if self.merging else "",
            "language": rendering.language(self.language),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with what the prompt names alone."""
        return narrowed(schema, self.strategies, self.judging)

    def extractive(self, vectors: VectorCache) -> PlanAndAskReply:
        """Return merges, judgement and concerns, all with the numbers of the points shown."""
        planned, concerns = _planned(self, self.memory, vectors)
        if not self.merging:
            return PlanAndAskReply(judgement=planned.judgement, concerns=concerns)
        merged = Merge(question=self.question, memory=self.memory).extractive(vectors).merge
        return MergeAndPlanReply(merge=merged, judgement=planned.judgement, concerns=concerns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeStep:
    """Ask for a whole step in one call: `Evolve`, `Merge`, `Plan` and `Subqueries` together.

    Without `merging` the prompt has no word of merges.
    """

    question: str
    subqueries: tuple[str, ...]
    memory: Shown
    evidence: Evidence
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    outlook: Outlook = field(default_factory=Outlook)
    concerns: int = 3
    merging: bool = True
    strategies: Strategies = "adaptive"
    judging: Judging = "concern"
    update: UpdateRule = "unite"
    language: str = ""
    name: ClassVar[str] = "step"
    prompt_file: ClassVar[Path] = PROMPTS / "step.md"

    @property
    def reply_type(self) -> type[StepWithoutMergesReply]:
        """What the reply may hold."""
        return StepReply if self.merging else StepWithoutMergesReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "subqueries": rendering.asked(self.subqueries),
            "memory": rendering.memory(self.memory),
            "evidence": rendering.evidence(self.evidence),
            **self.outlook.fields(previous=self.previous, hints=self.hints),
            **judging_fields(self.strategies, self.judging, concerns=self.concerns, subqueries=True),
            "updating": updating(self.update),
            "merging": "yes" if self.merging else "",
            "language": rendering.language(self.language),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with what the prompt names alone."""
        return narrowed(schema, self.strategies, self.judging)

    def extractive(self, vectors: VectorCache) -> StepReply:
        """Return what the evidence adds, then merges, judgement and what to ask of memory as it is with that."""
        evolve = Evolve(question=self.question, subqueries=self.subqueries, memory=self.memory, evidence=self.evidence)
        evolved = evolve.extractive(vectors)
        memory = Shown(points=after(self.memory.points, evolved))
        merge = Merge(question=self.question, memory=memory)
        merged = merge.extractive(vectors).merge if self.merging else ()
        asked = replace(self, previous=(*self.previous, *self.subqueries))
        planned, concerns = _planned(asked, memory, vectors)
        return StepReply(
            update=evolved.update, insert=evolved.insert, merge=merged, judgement=planned.judgement, concerns=concerns
        )


def _planned(
    task: MergeAndPlan | WholeStep, memory: Shown, vectors: VectorCache
) -> tuple[PlanReply, tuple[Inquiry, ...]]:
    """Return the plan for this memory, and its concerns with their sub-queries."""
    plan = Plan(
        question=task.question,
        memory=memory,
        previous=task.previous,
        hints=task.hints,
        concerns=task.concerns,
        judging=task.judging,
    )
    planned = plan.extractive(vectors)
    subqueries = Subqueries(
        question=task.question, memory=memory, concerns=planned.concerns, previous=task.previous, hints=task.hints
    )
    texts = subqueries.extractive(vectors).subqueries
    return planned, tuple(
        Inquiry(text=concern.text, subquery=text, points=concern.points, strategy=concern.strategy)
        for concern, text in zip(planned.concerns, texts, strict=True)
    )
