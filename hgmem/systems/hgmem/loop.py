"""HGMem: a working memory that is a hypergraph, evolved step by step (HGMem, 2025, sections 3.2 to 3.6).

One step: retrieve evidence for the sub-queries → evolve memory (update, insert) → merge points → plan: sufficient,
dig into named points (local investigation) or look where memory has nothing (global exploration, V_G − V_M) →
sub-queries of the next step. Then the answer, from the living points and their chunks.

By recipe, a first look at the corpus comes before the first step (gists/first_look.py), and a step calls a model for
each task by itself, or once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate, islice
from typing import Any, TypeVar

from hgmem.errors import UsageError
from hgmem.graph.database import Database
from hgmem.graph.retrieval import to_entity
from hgmem.memory.recording import Recording, recording
from hgmem.memory.stored_memories import Stored
from hgmem.models.metering import measuring
from hgmem.models.reply import Reply
from hgmem.retrieval.rendering import PromptMemory
from hgmem.retrieval.step_evidence import with_mentions
from hgmem.services import Services
from hgmem.systems.gists.first_look import FirstLook, is_clue
from hgmem.systems.hgmem.investigation import Investigation
from hgmem.systems.hgmem.recipes import Calls, HGMemConfig
from hgmem.systems.hgmem.replies import Additions, MergeReply, Retiring, Standing, SubqueriesReply, with_subqueries
from hgmem.systems.hgmem.step import Known, NextStep, StepDraft, names_of, ordered_keys, uncited
from hgmem.systems.hgmem.tasks import Describe, Evolve, Merge, OfPlan, Plan, Subqueries, WholeStep
from hgmem.systems.spec import loaded
from hgmem.text.identity import key, provisional_uid, uid
from hgmem.text.tokens import count
from hgmem.values.events import OperationApplied, StepStarted
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity, Relation
from hgmem.values.inputs import Question
from hgmem.values.records import Answer
from hgmem.values.task import Task

R = TypeVar("R", bound=Reply)
P = TypeVar("P", bound=OfPlan)

ROUNDS = 3  # of describing names that the corpus lacks: each asks for what is still missing (official code)
PAIRS, PAIR_TOKENS = 60, 2_400  # asked for at once
MOST_OPEN = 10  # of what a step says that the answer lacks
NAME = "hgmem"


def answer(services: Services, question: Question, config: HGMemConfig, *, stored: Stored | None) -> Answer:
    """Return the answer, its memory written to Neo4j. A memory keeps its rule for merges."""
    before = loaded(HGMemConfig, stored.settings) if stored else config
    if stored and "add" in (config.merge, before.merge) and config.merge != before.merge:
        raise UsageError(
            f"memory {stored.uid!r} was made with merge={before.merge} and cannot be continued with "
            f"merge={config.merge}: choose a recipe that has {before.merge}, or ask a new question"
        )
    with recording(services, system=NAME, question=question, settings=asdict(config)) as record:
        left = config.steps - (_interrupted(record) if question.steps is None else 0)
        work = Investigation.of(services, record, replace(config, steps=max(1, left)))
        if question.at_step is not None:
            return work.answer()
        return _investigated(work, wanted=question.answer)


def _interrupted(record: Recording) -> int:
    """Return how many steps the question has had since its last answer, which count against its limit.

    An answer between its steps (`answer_each_step`) is not its last: the step before it planned on.
    """
    since = 0
    for step in record.steps:
        if step.question == record.question:
            since = 0 if (step.question, step.number) in record.answered and not step.planned else since + 1
    return since


def _investigated(work: Investigation, *, wanted: bool) -> Answer:
    """Return the answer at the end of the loop: a step at a time, until there is nothing more to ask."""
    record = work.record
    last = record.next_number + work.config.steps - 1
    plan = _first(work)
    while plan.subqueries:
        following = _step(work, plan, last=record.next_number == last)
        if following is None:
            return record.no_evidence()
        if work.config.answer_each_step and following.subqueries and wanted:
            work.answer(last=False)
        plan = replace(following, notes=())  # they are the step's
    return work.answer() if wanted else record.unanswered()


def _first(work: Investigation) -> NextStep:
    """Return what to ask first: the question, or what the last step of the same question left to be asked."""
    record = work.record
    last = record.steps[-1] if record.steps else None
    if last is None or last.question != record.question or not record.points.active:
        return NextStep(subqueries=(Subquery(text=record.question),), look=bool(work.config.clues))
    unanswered = (record.question, last.number) not in record.answered
    if last.planned or last.judgement == "sufficient" or unanswered:
        return NextStep(subqueries=last.planned)
    # It was answered after the last step that it was allowed, which planned nothing.
    draft = work.draft(last.number, (), Evidence(), last=False)
    plan = plan_separately(work, draft)
    return NextStep(subqueries=plan.subqueries, notes=(*draft.notes, *plan.notes))


def _step(work: Investigation, asked: NextStep, *, last: bool) -> NextStep | None:
    """Take one step, write it, and return what to ask next, or None if neither it nor memory has anything."""
    record, services = work.record, work.services
    number = record.next_number
    with measuring() as meter:
        asked = _looked(work) if asked.look else asked
        services.listener.emit(StepStarted(step=number, subqueries=asked.subqueries))
        evidence, found = work.find(asked.subqueries, number)
        draft = work.draft(number, asked.subqueries, evidence, last=last)
        empty = evidence.empty and not draft.points
        plan = NextStep() if empty else _STEPS[work.config.calls](work, draft)
    step = record.new_step(
        evidence.strategy,
        evidence.retrieved,
        meter,
        judgement=plan.judgement,
        operations=tuple(draft.operations),
        premise=work.premise,
        open=work.open,
        planned=plan.subqueries,
        notes=(*asked.notes, *found, *draft.notes, *plan.notes),
    )
    record.write_step(step, draft.changes())
    return None if empty else plan


def _looked(work: Investigation) -> NextStep:
    config = work.config
    look = FirstLook(kinds=config.clues, most=config.most_clues, tokens=config.overview_tokens)
    asked, notes = look(work.services, work.record.scope, question=work.record.question, query=work.retrieved.query)
    return NextStep(subqueries=asked, notes=notes)


def separate(work: Investigation, draft: StepDraft) -> NextStep:
    """Evolve, merge, plan, sub-queries: a call each.

    The paper has one for each sub-query (version A, figure 7).
    """
    _evolve(work, draft)
    if draft.merging:
        memory = _memory(work, draft)
        task = Merge(
            question=work.record.question,
            memory=memory,
            language=work.services.language,
            additions=work.config.additions,
        )
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


def whole(work: Investigation, draft: StepDraft) -> NextStep:
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
    _stand(work, draft, reply)
    if reply.judgement is None:
        draft.notes.append("step: judgement missing, so it was inferred from the concerns")
    verdict = reply.judgement or ("open" if reply.concerns else "sufficient")
    return draft.next_step(verdict, reply.concerns, known=known)


_STEPS: Mapping[Calls, Callable[[Investigation, StepDraft], NextStep]] = {
    "separate": separate,
    "whole": whole,
}


def _evolve(work: Investigation, draft: StepDraft, *, merging: bool = False) -> None:
    """Add what the evidence says to memory, and merge in the same call where that is asked for."""
    found = draft.evidence
    cited = {uid for point in draft.points for uid in point.chunks}
    unused = any(chunk.uid not in cited for chunk in found.again)  # something may rest on it still
    if not (found.entities or found.relations or found.chunks or unused):
        draft.notes.append("evolve: no new evidence, so the model was not called")
        return
    task = Evolve(
        question=work.record.question,
        memory=_memory(work, draft),
        **_showing(work, draft),
        merging=merging,
        language=work.services.language,
        additions=work.config.additions,
    )
    reply = _reply(work, draft, task)
    if reply is None:
        return
    known = _apply(work, draft, reply, task.memory)
    if merging:
        _merge(work, draft, reply, known)
    _stand(work, draft, reply)


def _planning(work: Investigation, draft: StepDraft, task: type[P], **more: Any) -> P:
    """Return a task that plans from memory as it is now. Unless hints are described, each is given once a question."""
    memory, hints = _memory(work, draft), work.hints(draft)
    if not work.config.describe_hints:
        work.hinted |= {entity.thing for entity in hints}
    apart = (work.record.question, *more.get("subqueries", ()))  # the prompt names those of this step apart
    previous = tuple(one.text for one in work.asked if not is_clue(one) and one.text not in apart)
    if not previous and len(work.asked) > len(draft.subqueries):
        previous = ("(the question itself)",)
    return task(
        question=work.record.question,
        memory=memory,
        previous=previous,
        hints=hints,
        round=work.round(draft.number),
        concerns=work.config.concerns,
        strategies=work.config.strategies,
        judging=work.config.judging,
        language=work.services.language,
        additions=work.config.additions,
        **more,
    )


def _memory(work: Investigation, draft: StepDraft) -> PromptMemory:
    """Return the points that a prompt shows now, and give those that are new to prompts a number."""
    targets = {uid for subquery in draft.subqueries for uid in subquery.targets}
    return draft.number_points(work.fitting(draft.points, targets=targets, read=draft.evidence.chunks))


def _showing(work: Investigation, draft: StepDraft) -> dict[str, Any]:
    """Return what a prompt shows of a step: its sub-queries without the question itself, and what they found."""
    asked = (one for one in draft.subqueries if not is_clue(one))  # clues are guesses, which nobody takes for findings
    texts = tuple(one.text for one in asked if one.text != work.record.question)
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
            pairs=_named(pairs.values()),
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


def _named(pairs: Iterable[tuple[Entity, Entity]]) -> tuple[tuple[str, str], ...]:
    """Return the names of the pairs that one call asks for, at least one."""
    named = [(one.name, other.name) for one, other in islice(pairs, PAIRS)]
    sums = accumulate(count(" — ".join(pair)) + 2 for pair in named)
    return tuple(pair for pair, used in zip(named, sums, strict=True) if used <= PAIR_TOKENS) or tuple(named[:1])


def _reply(work: Investigation, draft: StepDraft, task: Task[R]) -> R | None:
    reply, notes = work.services.attempt(task)
    draft.notes += notes
    return reply


def _apply(work: Investigation, draft: StepDraft, reply: Additions, memory: PromptMemory) -> Known:
    """Apply what a reply adds, and return the points that its numbers refer to: those shown, then those it inserts.

    Names are linked to entities. An insertion that cites no chunk rests on those that mention its entities, which are
    read for that.
    """
    evidence, applied = draft.evidence, len(draft.operations)
    database, corpus = work.services.database, work.services.corpus
    known = [
        *evidence.entities,
        *(entity for chunk in evidence.chunks for entity in chunk.entities),
        *(entity for point in draft.points for entity in point.entities),
    ]
    entities = _resolved(database, names_of(reply), corpus=corpus, memory=draft.memory, known=known)
    numbered = "numbers" in work.config.additions
    if uncited(reply, evidence.numbered if numbered else ()):
        evidence = with_mentions(database, evidence, corpus=corpus)
    citable = evidence.numbered if numbered else evidence.chunks
    born = draft.evolve(reply, known=memory.numbered, chunks=citable, entities=entities)
    if work.config.describe:
        _describe(work, draft)
    _announce(work, draft, applied)
    whole = not any(note.startswith("insert ") for note in reply.notes)  # else its numbers of new points have shifted
    return (*memory.numbered, *(born if whole else ()))


def _resolved(
    database: Database, names: Sequence[str], *, corpus: str, memory: str, known: Iterable[Entity]
) -> dict[str, Entity]:
    """Return the entity of each name by its key: a known one or one of its class, a stored one, or a provisional one.

    It reads at most once, and not at all if all are known.
    """
    found: dict[str, Entity] = {}
    spelled: set[str] = set()  # points of a large memory involve the same entities repeatedly
    for entity in known:
        if entity.name not in spelled:
            for name in (entity.name, *entity.names):
                spelled.add(name)
                found.setdefault(key(name), entity)
    missing = {key(name): name for name in names if key(name) not in found}
    if not missing:
        return found
    uids = {uid(corpus, "entity", name_key): name_key for name_key in missing}
    own = {provisional_uid(memory, entity_uid): name_key for entity_uid, name_key in uids.items()}
    for row in database.run("find_entities", corpus=corpus, uids=[*uids, *own]):
        entity = to_entity(row["entity"])
        found.setdefault((own | uids)[entity.uid], entity)
    for entity_uid, name_key in uids.items():
        if name_key not in found:
            provisional = provisional_uid(memory, entity_uid)
            found[name_key] = Entity(uid=provisional, name=missing[name_key], provisional=True)
    return found


def _merge(work: Investigation, draft: StepDraft, reply: Reply, known: Known) -> None:
    """Apply the merges and retirements of a reply, if it has any. Their numbers refer to `known`."""
    applied = len(draft.operations)
    if isinstance(reply, MergeReply):
        draft.merge(reply, known=known)
    if isinstance(reply, Retiring):
        draft.retire(reply.retire, known=known)
    _announce(work, draft, applied)


def _stand(work: Investigation, draft: StepDraft, reply: Reply) -> None:
    """Take what a reply says of how the question stands, if it says so: each as a line, no longer than a point."""
    if isinstance(reply, Standing) and "premise" in reply.model_fields_set:
        work.premise = draft.statement(reply.premise)
    if isinstance(reply, Standing) and "open" in reply.model_fields_set:
        work.open = tuple(filter(None, map(draft.statement, reply.open[:MOST_OPEN])))


def _announce(work: Investigation, draft: StepDraft, applied: int) -> None:
    born = {birth.point.uid: birth.point.description for birth in draft.changes().births}
    for operation in draft.operations[applied:]:
        description = born.get(operation.point, "")
        work.services.listener.emit(OperationApplied(step=draft.number, operation=operation, description=description))
