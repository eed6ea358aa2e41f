"""One step's calls of a model, in the three ways of recipes: each task by itself, two calls, or one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hgmem.errors import BadReplyError
from hgmem.graph.retrieval import Scope, neighbours
from hgmem.models.reply import Reply
from hgmem.retrieval.context_packing import shown
from hgmem.retrieval.entity_linking import known_entities, resolve
from hgmem.retrieval.rendering import Shown
from hgmem.services import Services
from hgmem.systems.hgmem.absent_entities import describe
from hgmem.systems.hgmem.draft import Draft, names_of
from hgmem.systems.hgmem.nearness import Nearness
from hgmem.systems.hgmem.query_planning import Course, Next, following, paired
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import Concern, EvolveReply, Inquiry, MergeReply, SubqueriesReply
from hgmem.systems.hgmem.tasks.combined import MergeAndPlan, WholeStep
from hgmem.systems.hgmem.tasks.memory_changes import Evolve, Merge
from hgmem.systems.hgmem.tasks.planning import Plan, Subqueries
from hgmem.values.events import OperationApplied
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Judgement, MemoryPoint
from hgmem.values.task import Task

R = TypeVar("R", bound=Reply)


@dataclass(slots=True, kw_only=True)
class Turn:
    """One step at work: what it asks, what was found, what it makes of memory."""

    services: Services
    config: HGMemConfig
    question: str
    asked: tuple[str, ...]  # every sub-query so far, those of this step too
    draft: Draft
    subqueries: tuple[Subquery, ...]
    evidence: Evidence
    last: bool
    nearness: Nearness
    scope: Scope
    notes: list[str] = field(default_factory=list)
    told: int = 0  # operations of the draft that the listener has heard of

    def reply(self, task: Task[R]) -> R | None:
        """Return the model's reply, or None if it is unusable, with notes on what was left out."""
        try:
            reply = self.services.reply(task)
        except BadReplyError as error:
            self.notes.append(f"{task.name}: no usable reply ({error})")
            return None
        self.notes += [f"{task.name}: {note}" for note in reply.notes]
        return reply

    def shown(self) -> Shown:
        """Return the points that a prompt shows now."""
        targets = {uid for one in self.subqueries for uid in one.targets}
        return shown(self.draft.points, tokens=self.config.memory_tokens, near=self.nearness.of, targets=targets)

    def hints(self) -> tuple[Entity, ...]:
        """Return neighbours of memory that it does not hold, those nearest to the question first."""
        if not self.config.hints:
            return ()
        own = self.draft.provisionals
        held = {entity.uid for point in self.draft.points for entity in point.entities if entity.uid not in own}
        return neighbours(
            self.services.database,
            scope=self.scope,
            uids=sorted(held),
            query=self.nearness.query,
            limits=(self.config.hints, self.config.hint_hub),
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The sub-queries of this step, without the question itself."""
        return tuple(one.text for one in self.subqueries if one.text != self.question)

    @property
    def previous(self) -> tuple[str, ...]:
        """Every sub-query so far, without the question itself."""
        return tuple(text for text in self.asked if text != self.question)

    @property
    def merging(self) -> bool:
        """Whether this step merges: from the second on, where there is something to merge."""
        return self.config.merge != "off" and self.draft.number > 1 and len(self.draft.points) > 1

    def apply(self, reply: EvolveReply, memory: Shown) -> tuple[MemoryPoint | None, ...]:
        """Link names to entities, apply updates and inserts, and return the point of each insertion."""
        entities = resolve(
            self.services.database,
            names_of(reply),
            corpus=self.services.corpus,
            memory=self.draft.memory,
            known=known_entities(self.evidence, self.draft.points),
        )
        born = self.draft.evolve(reply, shown=memory.points, chunks=self.evidence.numbered, entities=entities)
        if self.config.describe:
            self.notes += describe(self.services, self.draft, self.evidence)
        self._tell()
        return born

    def merge(self, reply: MergeReply, known: Sequence[MemoryPoint | None]) -> None:
        """Apply merges, whose indices refer to `known`."""
        self.draft.merge(reply, shown=known)
        self._tell()

    def next(self, judgement: Judgement, inquiries: Sequence[Inquiry], known: Sequence[MemoryPoint | None]) -> Next:
        """Return what a plan leads to. Its indices refer to `known`."""
        course = Course(
            concerns=self.config.concerns,
            strategies=self.config.strategies,
            previous=(self.question, *self.asked),
        )
        return following(judgement, inquiries, shown=known, living=self.draft.living, course=course)

    def _tell(self) -> None:
        said = {birth.point.uid: birth.point.description for birth in self.draft.births}
        for operation in self.draft.operations[self.told :]:
            described = said.get(operation.point, "")
            self.services.listener.emit(
                OperationApplied(step=self.draft.number, operation=operation, description=described)
            )
        self.told = len(self.draft.operations)


def separate(turn: Turn) -> Next:
    """Evolve, merge, plan, sub-queries: a call each, as in the paper."""
    _evolve(turn)
    if turn.merging:
        memory = turn.shown()
        merged = turn.reply(Merge(question=turn.question, memory=memory, language=turn.services.language))
        turn.merge(merged or MergeReply(), memory.points)
    return Next() if turn.last else planned(turn)


def planned(turn: Turn) -> Next:
    """Plan, then sub-queries: what memory as it is now leads to."""
    config, memory, hints = turn.config, turn.shown(), turn.hints()
    plan = turn.reply(
        Plan(
            question=turn.question,
            memory=memory,
            previous=turn.previous,
            hints=hints,
            concerns=config.concerns,
            strategies=config.strategies,
            language=turn.services.language,
        )
    )
    if plan is None:
        return Next()
    if plan.judgement == "sufficient" or not plan.concerns:
        return turn.next(plan.judgement, (), memory.points)
    concerns = plan.concerns[: config.concerns]
    reply = turn.reply(
        Subqueries(question=turn.question, memory=memory, concerns=concerns, previous=turn.previous, hints=hints)
    )
    inquiries, notes = paired(concerns, reply or SubqueriesReply(subqueries=()))
    turn.notes += notes
    return turn.next(plan.judgement, (*inquiries, *map(_alone, plan.concerns[config.concerns :])), memory.points)


def compact(turn: Turn) -> Next:
    """Evolve, then merge, plan and write sub-queries in one call, unless this is the last step."""
    _evolve(turn)
    if turn.last:
        return Next()
    memory = turn.shown()
    reply = turn.reply(
        MergeAndPlan(
            question=turn.question,
            memory=memory,
            previous=turn.previous,
            hints=turn.hints(),
            concerns=turn.config.concerns,
            merging=turn.merging,
            strategies=turn.config.strategies,
            language=turn.services.language,
        )
    )
    if reply is None:
        return Next()
    if turn.merging:
        turn.merge(MergeReply(merge=reply.merge), memory.points)
    return turn.next(reply.judgement, reply.concerns, memory.points)


def single(turn: Turn) -> Next:
    """Ask for operations, merges, plan and sub-queries in one call. Inserted points are numbered after those shown."""
    memory = turn.shown()
    may_merge = turn.config.merge != "off" and turn.draft.number > 1
    reply = turn.reply(
        WholeStep(
            question=turn.question,
            subqueries=turn.texts,
            memory=memory,
            evidence=turn.evidence,
            previous=tuple(text for text in turn.previous if text not in turn.texts),
            hints=() if turn.last else turn.hints(),
            concerns=turn.config.concerns,
            merging=may_merge,
            planning=not turn.last,
            strategies=turn.config.strategies,
            update=turn.config.update,
            language=turn.services.language,
        )
    )
    if reply is None:
        return Next()
    born = turn.apply(EvolveReply(update=reply.update, insert=reply.insert), memory)
    whole = not any(note.startswith("insert ") for note in reply.notes)  # else its numbers of new points have shifted
    known = (*memory.points, *(born if whole else ()))
    if may_merge:
        turn.merge(MergeReply(merge=reply.merge), known)
    if turn.last:
        return Next()
    if reply.judgement is None:
        turn.notes.append("step: judgement missing, so it was inferred from the concerns")
    return turn.next(reply.judgement or _judged(reply.concerns), reply.concerns, known)


CALLS: Mapping[str, Callable[[Turn], Next]] = {"separate": separate, "compact": compact, "single": single}


def _evolve(turn: Turn) -> None:
    found = turn.evidence
    if not (found.entities or found.relations or found.chunks):
        turn.notes.append("evolve: no new evidence, so the model was not called")
        return
    memory = turn.shown()
    reply = turn.reply(
        Evolve(
            question=turn.question,
            subqueries=turn.texts,
            memory=memory,
            evidence=turn.evidence,
            update=turn.config.update,
            language=turn.services.language,
        )
    )
    if reply is not None:
        turn.apply(reply, memory)


def _judged(concerns: Sequence[Inquiry]) -> Judgement:
    """Return what concerns by themselves say of memory."""
    if not concerns:
        return "sufficient"
    return "local" if any(one.points for one in concerns) else "global"


def _alone(concern: Concern) -> Inquiry:
    return Inquiry(text=concern.text, subquery="", points=concern.points)
