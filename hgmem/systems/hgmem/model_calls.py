"""One step's calls of a model, in the three ways of recipes: each task by itself, two calls, or one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hgmem.models.reply import Reply
from hgmem.retrieval.entity_linking import known_entities, resolve, with_mentions
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.investigation import Investigation, replied
from hgmem.systems.hgmem.replies import Additions, MergeReply, SubqueriesReply
from hgmem.systems.hgmem.step import NextStep, StepDraft, names_of, ordered_keys, uncited, with_subqueries
from hgmem.systems.hgmem.tasks import Describe, Evolve, Merge, MergeAndPlan, OfPlan, Plan, Subqueries, WholeStep
from hgmem.text.identity import key, uid
from hgmem.values.events import OperationApplied
from hgmem.values.graph_elements import Relation
from hgmem.values.records import MemoryPoint
from hgmem.values.task import Task

R = TypeVar("R", bound=Reply)
P = TypeVar("P", bound=OfPlan)

ROUNDS = 3  # of describing names that the corpus lacks: each asks for what is still missing (official code)
PAIRS = 60  # asked for at once


def separate(work: Investigation, draft: StepDraft) -> NextStep:
    """Evolve, merge, plan, sub-queries: a call each, as in the paper."""
    _evolve(work, draft)
    if draft.merging:
        memory = _memory(work, draft)
        task = Merge(question=work.record.question, memory=memory, language=work.services.language)
        _merge(work, draft, _reply(work, draft, task) or MergeReply(), memory.numbered)
    return NextStep() if draft.last else plan_separately(work, draft)


def plan_separately(work: Investigation, draft: StepDraft) -> NextStep:
    """Plan, then sub-queries: what memory as it is now leads to."""
    task = _planning(work, draft, Plan)
    plan, numbered = _reply(work, draft, task), task.memory.numbered
    if plan is None:
        return NextStep()
    if plan.judgement == "sufficient" or not plan.concerns:
        return draft.next_step(plan.judgement, (), known=numbered)
    asking = Subqueries(
        question=task.question,
        memory=task.memory,
        concerns=plan.concerns[: task.concerns],
        previous=task.previous,
        hints=task.hints,
        round=task.round,
    )
    reply = _reply(work, draft, asking) or SubqueriesReply(subqueries=())
    inquiries, notes = with_subqueries(asking.concerns, reply)
    draft.notes += notes
    surplus = (concern.asked("") for concern in plan.concerns[task.concerns :])
    return draft.next_step(plan.judgement, (*inquiries, *surplus), known=numbered)


def compact(work: Investigation, draft: StepDraft) -> NextStep:
    """Evolve, then merge, plan and write sub-queries in one call. The last step evolves and merges in one."""
    _evolve(work, draft, merging=draft.last and draft.may_merge)
    if draft.last:
        return NextStep()
    task = _planning(work, draft, MergeAndPlan, merging=draft.merging)
    reply = _reply(work, draft, task)
    if reply is None:
        return NextStep()
    if task.merging:
        _merge(work, draft, reply, task.memory.numbered)
    return draft.next_step(reply.judgement, reply.concerns, known=task.memory.numbered)


def single(work: Investigation, draft: StepDraft) -> NextStep:
    """Ask for operations, merges, plan and sub-queries in one call. The last step plans nothing."""
    if draft.last:
        _evolve(work, draft, merging=draft.may_merge)
        return NextStep()
    task = _planning(work, draft, WholeStep, **_showing(work, draft), merging=draft.may_merge)
    reply = _reply(work, draft, task)
    if reply is None:
        return NextStep()
    known = _apply(work, draft, reply, task.memory)
    if task.merging:
        _merge(work, draft, reply, known)
    if reply.judgement is None:
        draft.notes.append("step: judgement missing, so it was inferred from the concerns")
    verdict = reply.judgement or ("open" if reply.concerns else "sufficient")
    return draft.next_step(verdict, reply.concerns, known=known)


RUN_STEP: Mapping[str, Callable[[Investigation, StepDraft], NextStep]] = {
    "separate": separate,
    "compact": compact,
    "single": single,
}


def _evolve(work: Investigation, draft: StepDraft, *, merging: bool = False) -> None:
    """Add what the evidence says to memory, and merge in the same call where that is asked for."""
    found = draft.evidence
    if not (found.entities or found.relations or found.chunks):
        draft.notes.append("evolve: no new evidence, so the model was not called")
        return
    task = Evolve(
        question=work.record.question,
        memory=_memory(work, draft),
        **_showing(work, draft),
        merging=merging,
        language=work.services.language,
    )
    reply = _reply(work, draft, task)
    if reply is None:
        return
    known = _apply(work, draft, reply, task.memory)
    if merging:
        _merge(work, draft, reply, known)


def _planning(work: Investigation, draft: StepDraft, task: type[P], **more: Any) -> P:
    """Return a task that plans from memory as it is now. Unless hints are described, each is given once a question."""
    memory, hints = _memory(work, draft), work.hints(draft)
    if not work.config.describe_hints:
        work.hinted |= {entity.uid for entity in hints}
    apart = more.get("subqueries", ())  # the prompt names those of this step apart
    return task(
        question=work.record.question,
        memory=memory,
        previous=tuple(text for text in work.asked if text not in (work.record.question, *apart)),
        hints=hints,
        round=work.round(draft.number),
        concerns=work.config.concerns,
        strategies=work.config.strategies,
        judging=work.config.judging,
        language=work.services.language,
        **more,
    )


def _memory(work: Investigation, draft: StepDraft) -> PromptMemory:
    """Return the points that a prompt shows now, and give those that are new to prompts a number."""
    targets = {uid for subquery in draft.subqueries for uid in subquery.targets}
    return draft.number_points(work.fitting(draft.points, targets=targets))


def _showing(work: Investigation, draft: StepDraft) -> dict[str, Any]:
    """Return what a prompt shows of a step: its sub-queries without the question itself, and what they found."""
    texts = tuple(subquery.text for subquery in draft.subqueries if subquery.text != work.record.question)
    return {"subqueries": texts, "evidence": draft.evidence, "update": work.config.update}


def _describe(work: Investigation, draft: StepDraft) -> None:
    """Describe the draft's new entities, and relate them to the entities of their points, in three calls at most."""
    names = {key(entity.name): entity for entity in draft.provisionals.values()}
    pairs = draft.pairs()
    for _ in range(ROUNDS):
        if not names and not pairs:
            break
        task = Describe(
            names=tuple(entity.name for entity in names.values()),
            pairs=tuple((entity.name, other.name) for entity, other in list(pairs.values())[:PAIRS]),
            evidence=draft.evidence,
        )
        reply = _reply(work, draft, task)
        if reply is None:
            continue
        for described in reply.entities:
            entity = names.pop(key(described.name), None)
            if entity is not None:
                description = described.description or entity.description
                draft.redescribe(replace(entity, type=described.type, description=description))
        for stated in reply.relations:
            ends = ordered_keys(stated.source, stated.target)
            if ends in pairs:
                source, target = pairs.pop(ends)
                relation = Relation(
                    uid=uid(draft.memory, "relation", source.uid, target.uid),
                    source=source.uid,
                    target=target.uid,
                    source_name=source.name,
                    target_name=target.name,
                    description=stated.description,
                    keywords=stated.keywords,
                    weight=stated.weight,
                )
                draft.relations[relation.uid] = relation


def _reply(work: Investigation, draft: StepDraft, task: Task[R]) -> R | None:
    reply, notes = replied(work.services, task)
    draft.notes += notes
    return reply


def _apply(
    work: Investigation, draft: StepDraft, reply: Additions, memory: PromptMemory
) -> Sequence[MemoryPoint | None]:
    """Apply what a reply adds, and return the points that its numbers refer to: those shown, then those it inserts.

    Names are linked to entities. An insertion that cites no chunk rests on those that mention its entities, which are
    read for that.
    """
    services, evidence, applied = work.services, draft.evidence, len(draft.operations)
    entities = resolve(
        services.database,
        names_of(reply),
        corpus=services.corpus,
        memory=draft.memory,
        known=known_entities(evidence, draft.points),
    )
    if uncited(reply, evidence.numbered):
        evidence = with_mentions(services.database, evidence, corpus=services.corpus)
    born = draft.evolve(reply, known=memory.points, chunks=evidence.numbered, entities=entities)
    if work.config.describe:
        _describe(work, draft)
    _announce(work, draft, applied)
    whole = not any(note.startswith("insert ") for note in reply.notes)  # else its numbers of new points have shifted
    return (*memory.points, *(born if whole else ()))


def _merge(work: Investigation, draft: StepDraft, reply: Reply, known: Sequence[MemoryPoint | None]) -> None:
    """Apply the merges of a reply, if it has any. Their numbers refer to `known`."""
    applied = len(draft.operations)
    if isinstance(reply, MergeReply):
        draft.merge(reply, known=known)
    _announce(work, draft, applied)


def _announce(work: Investigation, draft: StepDraft, applied: int) -> None:
    """Tell the listener of operations beyond the first `applied`."""
    born = {birth.point.uid: birth.point.description for birth in draft.changes().births}
    for operation in draft.operations[applied:]:
        description = born.get(operation.point, "")
        work.services.listener.emit(OperationApplied(step=draft.number, operation=operation, description=description))
