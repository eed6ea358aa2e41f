"""One step's calls of a model, in the three ways of recipes: each task by itself, two calls, or one."""

from collections.abc import Callable, Mapping, Sequence

from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm import LanguageModel
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.query_planning import Next, paired
from hgmem.systems.hgmem.replies import (
    Additions,
    Concern,
    EvolveReply,
    Inquiry,
    MergeAndPlanReply,
    MergeReply,
    StepReply,
    SubqueriesReply,
)
from hgmem.systems.hgmem.tasks.combined import MergeAndPlan, WholeStep
from hgmem.systems.hgmem.tasks.memory_changes import Evolve, Merge
from hgmem.systems.hgmem.tasks.planning import Plan, Subqueries
from hgmem.systems.hgmem.turn import Turn
from hgmem.values.records import MemoryPoint


def reads_mentions(model: LanguageModel) -> bool:
    """Return whether the rule-based model reads what a step found: it needs the entities that each chunk mentions."""
    readers = (Evolve.name, WholeStep.name, AnswerQuestion.name)
    return any(serving(model, name).name == ExtractiveModel.name for name in readers)


def separate(turn: Turn) -> Next:
    """Evolve, merge, plan, sub-queries: a call each, as in the paper."""
    _evolve(turn)
    if turn.merging:
        memory = turn.shown()
        merged = turn.reply(Merge(question=turn.question, memory=memory, language=turn.services.language))
        turn.merge(merged or MergeReply(), memory.numbered)
    return Next() if turn.last else planned(turn)


def planned(turn: Turn) -> Next:
    """Plan, then sub-queries: what memory as it is now leads to."""
    config, memory, hints, outlook = turn.config, turn.shown(), turn.hints(), turn.outlook()
    plan = turn.reply(
        Plan(
            question=turn.question,
            memory=memory,
            previous=turn.previous,
            hints=hints,
            outlook=outlook,
            concerns=config.concerns,
            strategies=config.strategies,
            judging=config.judging,
            language=turn.services.language,
        )
    )
    if plan is None:
        return Next()
    if plan.judgement == "sufficient" or not plan.concerns:
        return turn.next(plan.judgement, (), memory.numbered)
    concerns = plan.concerns[: config.concerns]
    reply = turn.reply(
        Subqueries(
            question=turn.question,
            memory=memory,
            concerns=concerns,
            previous=turn.previous,
            hints=hints,
            outlook=outlook,
        )
    )
    inquiries, notes = paired(concerns, reply or SubqueriesReply(subqueries=()))
    turn.notes += notes
    surplus = map(_alone, plan.concerns[config.concerns :])
    return turn.next(plan.judgement, (*inquiries, *surplus), memory.numbered)


def compact(turn: Turn) -> Next:
    """Evolve, then merge, plan and write sub-queries in one call. The last step evolves and merges in one."""
    if turn.last:
        return _evolve(turn, merging=turn.may_merge)
    _evolve(turn)
    memory = turn.shown()
    reply = turn.reply(
        MergeAndPlan(
            question=turn.question,
            memory=memory,
            previous=turn.previous,
            hints=turn.hints(),
            outlook=turn.outlook(),
            concerns=turn.config.concerns,
            merging=turn.merging,
            strategies=turn.config.strategies,
            judging=turn.config.judging,
            language=turn.services.language,
        )
    )
    if reply is None:
        return Next()
    if turn.merging and isinstance(reply, MergeAndPlanReply):
        turn.merge(MergeReply(merge=reply.merge), memory.numbered)
    return turn.next(reply.judgement, reply.concerns, memory.numbered)


def single(turn: Turn) -> Next:
    """Ask for operations, merges, plan and sub-queries in one call. The last step plans nothing."""
    if turn.last:
        return _evolve(turn, merging=turn.may_merge)
    memory = turn.shown()
    reply = turn.reply(
        WholeStep(
            question=turn.question,
            subqueries=turn.texts,
            memory=memory,
            evidence=turn.evidence,
            previous=tuple(text for text in turn.previous if text not in turn.texts),
            hints=turn.hints(),
            outlook=turn.outlook(),
            concerns=turn.config.concerns,
            merging=turn.may_merge,
            strategies=turn.config.strategies,
            judging=turn.config.judging,
            update=turn.config.update,
            language=turn.services.language,
        )
    )
    if reply is None:
        return Next()
    known = _applied(turn, reply, memory)
    if turn.may_merge and isinstance(reply, StepReply):
        turn.merge(MergeReply(merge=reply.merge), known)
    if reply.judgement is None:
        turn.notes.append("step: judgement missing, so it was inferred from the concerns")
    return turn.next(reply.judgement or ("open" if reply.concerns else "sufficient"), reply.concerns, known)


CALLS: Mapping[str, Callable[[Turn], Next]] = {"separate": separate, "compact": compact, "single": single}


def _evolve(turn: Turn, *, merging: bool = False) -> Next:
    """Add what the evidence says to memory, and merge in the same call where that is asked for."""
    found = turn.evidence
    if not (found.entities or found.relations or found.chunks):
        turn.notes.append("evolve: no new evidence, so the model was not called")
        return Next()
    memory = turn.shown()
    reply = turn.reply(
        Evolve(
            question=turn.question,
            subqueries=turn.texts,
            memory=memory,
            evidence=turn.evidence,
            update=turn.config.update,
            merging=merging,
            language=turn.services.language,
        )
    )
    if reply is None:
        return Next()
    known = _applied(turn, reply, memory)
    if merging and isinstance(reply, EvolveReply):
        turn.merge(MergeReply(merge=reply.merge), known)
    return Next()


def _applied(turn: Turn, reply: Additions, memory: Shown) -> Sequence[MemoryPoint | None]:
    """Apply what a reply adds, and return the points that its numbers refer to: those shown, then those it inserts."""
    born = turn.apply(reply, memory)
    whole = not any(note.startswith("insert ") for note in reply.notes)  # else its numbers of new points have shifted
    return (*memory.points, *(born if whole else ()))


def _alone(concern: Concern) -> Inquiry:
    return Inquiry(text=concern.text, subquery="", points=concern.points, strategy=concern.strategy)
