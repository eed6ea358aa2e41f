"""HGMem: a working memory that is a hypergraph, evolved step by step (HGMem, 2025, sections 3.1 to 3.4).

One step: retrieve evidence for the sub-queries → evolve memory (update, insert) → merge points → plan: sufficient,
dig into named points (local investigation) or look where memory has nothing (global exploration, V_G − V_M) →
sub-queries of the next step. Then the answer, from the living points and their chunks.
"""

from dataclasses import asdict

from hgmem.errors import UsageError
from hgmem.memory.recording import recording
from hgmem.memory.stored_memories import Stored
from hgmem.models.metering import measuring
from hgmem.services import Services
from hgmem.systems.hgmem.investigation import Investigation
from hgmem.systems.hgmem.model_calls import RUN_STEP, plan_separately
from hgmem.systems.hgmem.query_planning import NextStep
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.options import loaded
from hgmem.text.language import no_evidence
from hgmem.values.events import StepStarted
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.inputs import Question
from hgmem.values.records import Answer

NAME = "hgmem"


def answer(services: Services, question: Question, config: HGMemConfig, *, stored: Stored | None) -> Answer:
    """Return the answer, its memory written to Neo4j. A memory keeps its rule for merges."""
    if stored:
        _check_merge_rule(config, stored)
    with recording(services, system=NAME, question=question, settings=asdict(config)) as record:
        work = Investigation.of(services, record, config, at_step=question.at_step)
        if question.at_step is not None:
            return work.answer(at_step=question.at_step)
        return _investigated(work, wanted=question.answer)


def _check_merge_rule(config: HGMemConfig, stored: Stored) -> None:
    before = loaded(HGMemConfig, stored.settings).merge
    if "add" in (config.merge, before) and config.merge != before:
        raise UsageError(
            f"memory {stored.uid!r} was made with merge={before} and cannot be continued with "
            f"merge={config.merge}: choose a recipe that has {before}, or ask a new question"
        )


def _investigated(work: Investigation, *, wanted: bool) -> Answer:
    """Return the answer at the end of the loop: a step at a time, until there is nothing more to ask."""
    record = work.record
    last = record.next_number + work.config.steps - 1
    plan = _first(work)
    notes = plan.notes
    while plan.subqueries:
        following = _step(work, plan.subqueries, notes=notes, last=record.next_number == last)
        if following is None:
            return record.no_evidence(no_evidence(record.question), step=record.next_number - 1)
        if work.config.answer_each_step and following.subqueries and wanted:
            work.answer(last=False)
        plan, notes = following, ()
    return work.answer() if wanted else record.unanswered(step=record.next_number - 1)


def _first(work: Investigation) -> NextStep:
    """Return what to ask first: the question, or what the last step of the same question left to be asked."""
    record = work.record
    last = record.steps[-1] if record.steps else None
    if last is None or last.question != record.question or not record.points.active:
        return NextStep(subqueries=(Subquery(text=record.question),))
    unanswered = (record.question, last.number) not in record.answered
    if last.planned or last.judgement == "sufficient" or unanswered:
        return NextStep(subqueries=last.planned)
    # It was answered after the last step that it was allowed, which planned nothing.
    draft = work.draft(last.number, (), Evidence(), last=False)
    plan = plan_separately(work, draft)
    return NextStep(subqueries=plan.subqueries, notes=(*draft.notes, *plan.notes))


def _step(
    work: Investigation, subqueries: tuple[Subquery, ...], *, notes: tuple[str, ...], last: bool
) -> NextStep | None:
    """Take one step, write it, and return what to ask next, or None if neither it nor memory has anything."""
    record, services = work.record, work.services
    number = record.next_number
    services.listener.emit(StepStarted(step=number, subqueries=subqueries))
    with measuring() as meter:
        evidence, found = work.find(subqueries, number)
        draft = work.draft(number, subqueries, evidence, last=last)
        empty = evidence.empty and not draft.points
        plan = NextStep() if empty else RUN_STEP[work.config.calls](work, draft)
    step = record.new_step(
        evidence.strategy,
        evidence.retrieved,
        meter,
        judgement=plan.judgement,
        operations=tuple(draft.operations),
        planned=plan.subqueries,
        notes=(*notes, *found, *draft.notes, *plan.notes),
    )
    record.write_step(step, draft.changes())
    return None if empty else plan
