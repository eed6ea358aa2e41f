"""Several tasks in one reply: each by itself, then told in the numbers that the one reply uses."""

from dataclasses import replace

from hgmem.combined import MergeAndPlan, MergeAndPlanReply, StepReply, WholeStep
from hgmem.extractive.evolve import evolve
from hgmem.extractive.merge import merge
from hgmem.extractive.plan import plan
from hgmem.extractive.subqueries import subqueries
from hgmem.extractive.vectors import VectorCache
from hgmem.identity import key
from hgmem.memory import Evolve, EvolveReply, Merge
from hgmem.model import Entity, MemoryPoint
from hgmem.plan import Inquiry, Plan, PlanReply, Subqueries
from hgmem.rendering import Shown


def merge_and_plan(task: MergeAndPlan, vectors: VectorCache) -> MergeAndPlanReply:
    """Return the merges, the judgement and what to ask; all numbers are those of the points shown."""
    merged = merge(Merge(question=task.question, memory=task.memory), vectors).merge if task.merging else ()
    planned = _planned(task, task.memory, vectors)
    return MergeAndPlanReply(merge=merged, judgement=planned.judgement, concerns=_inquiries(task, task.memory, planned))


def whole_step(task: WholeStep, vectors: VectorCache) -> StepReply:
    """Return what the evidence adds, then merges, judgement and what to ask of memory as it is with that."""
    task = replace(task, previous=(*task.previous, *task.subqueries))
    evolved = evolve(
        Evolve(question=task.question, subqueries=task.subqueries, memory=task.memory, evidence=task.evidence), vectors
    )
    after = Shown(points=_after(task.memory.points, evolved))
    merged = merge(Merge(question=task.question, memory=after), vectors).merge if task.merging else ()
    if not task.planning:
        return StepReply(update=evolved.update, insert=evolved.insert, merge=merged)
    planned = _planned(task, after, vectors)
    return StepReply(
        update=evolved.update,
        insert=evolved.insert,
        merge=merged,
        judgement=planned.judgement,
        concerns=_inquiries(task, after, planned),
    )


def _planned(task: MergeAndPlan | WholeStep, memory: Shown, vectors: VectorCache) -> PlanReply:
    asked = Plan(
        question=task.question, memory=memory, previous=task.previous, hints=task.hints, concerns=task.concerns
    )
    return plan(asked, vectors)


def _inquiries(task: MergeAndPlan | WholeStep, memory: Shown, planned: PlanReply) -> tuple[Inquiry, ...]:
    asked = Subqueries(
        question=task.question, memory=memory, concerns=planned.concerns, previous=task.previous, hints=task.hints
    )
    texts = subqueries(asked).subqueries
    return tuple(
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
