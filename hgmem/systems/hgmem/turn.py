"""One step at work: what a question asks, what was found, and what replies make of memory."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hgmem.errors import BadReplyError
from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import Scope, documents_beside, neighbours
from hgmem.memory.recording import Recording
from hgmem.models.embedding import Vectors
from hgmem.models.reply import Reply
from hgmem.retrieval.context_packing import shown
from hgmem.retrieval.entity_linking import known_entities, resolve, with_mentions
from hgmem.retrieval.rendering import Shown
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.hgmem.draft import Draft, names_of, uncited
from hgmem.systems.hgmem.query_planning import Course, Next, following
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import Additions, Inquiry, MergeReply, Verdict
from hgmem.systems.hgmem.tasks.memory_changes import Describe
from hgmem.systems.hgmem.tasks.planning import Outlook
from hgmem.text.identity import key, uid
from hgmem.values.events import OperationApplied
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity, Relation
from hgmem.values.records import MemoryPoint
from hgmem.values.task import Task

ROUNDS = 3  # each asks for what is still missing (official code)
PAIRS = 60  # asked for at once


def describe(services: Services, draft: Draft, evidence: Evidence) -> list[str]:
    """Describe the draft's new entities and relate them to the entities of their points, and return notes."""
    names = {key(entity.name): entity for entity in draft.provisionals.values()}
    pairs = _pairs(draft)
    notes: list[str] = []
    for _ in range(ROUNDS):
        if not names and not pairs:
            break
        try:
            reply = services.reply(
                Describe(
                    names=tuple(entity.name for entity in names.values()),
                    pairs=tuple((one.name, other.name) for one, other in list(pairs.values())[:PAIRS]),
                    evidence=evidence,
                )
            )
        except BadReplyError as error:
            notes.append(f"describe: no usable reply ({error})")
            continue
        notes += [f"describe: {note}" for note in reply.notes]
        for said in reply.entities:
            entity = names.pop(key(said.name), None)
            if entity is not None:
                draft.redescribe(replace(entity, type=said.type, description=said.description or entity.description))
        for stated in reply.relations:
            ends = _ordered(stated.source, stated.target)
            if ends in pairs:
                one, other = pairs.pop(ends)
                relation = Relation(
                    uid=uid(draft.memory, "relation", one.uid, other.uid),
                    source=one.uid,
                    target=other.uid,
                    source_name=one.name,
                    target_name=other.name,
                    description=stated.description,
                    keywords=stated.keywords,
                    weight=stated.weight,
                )
                draft.relations[relation.uid] = relation
    return notes


def _pairs(draft: Draft) -> dict[tuple[str, str], tuple[Entity, Entity]]:
    """Return every pair of a new entity and another one of the same new point, by their keys in order."""
    found: dict[tuple[str, str], tuple[Entity, Entity]] = {}
    for birth in draft.births:
        for entity in birth.point.entities:
            if entity.uid in draft.provisionals:
                found |= _with(entity, birth.point.entities)
    return found


def _with(entity: Entity, others: Sequence[Entity]) -> Mapping[tuple[str, str], tuple[Entity, Entity]]:
    return {
        _ordered(entity.name, other.name): (entity, other) if key(entity.name) < key(other.name) else (other, entity)
        for other in others
        if other.uid != entity.uid
    }


def _ordered(one: str, other: str) -> tuple[str, str]:
    first, second = sorted((key(one), key(other)))
    return first, second


@dataclass(slots=True, kw_only=True)
class Nearness:
    """Scores of points by uid: cosine to `query` in [-1, 1], each computed once."""

    services: Services
    record: Recording
    query: Vectors
    scores: dict[str, float] = field(default_factory=dict)

    def of(self, points: Sequence[MemoryPoint]) -> list[float]:
        """Return the score of each point, in order, with vectors of stored points read from the database."""
        stored = len(self.record.points)
        if not self.scores and stored:
            scope = self.record.scope
            self.scores = point_scores(
                self.services.database, corpus=scope.corpus, memory=scope.memory, query=self.query, most=stored
            )
        missing = [point for point in points if point.uid not in self.scores]
        if missing:
            made = self.services.embed([point.description for point in missing], kind="document")
            self.scores |= {point.uid: float(one @ self.query) for point, one in zip(missing, made, strict=True)}
        return [self.scores[point.uid] for point in points]


R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a question is: `done` of `rounds` rounds, the chunks (uids) read, and the entities hinted at so far."""

    done: int
    rounds: int
    read: Set[str]
    hinted: set[str]


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
    progress: Progress
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)  # of points (uids) in this step's prompts
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
        """Return the points that a prompt shows now. A point has one number in all prompts of a step."""
        targets = {uid for one in self.subqueries for uid in one.targets}
        fitting = shown(self.draft.points, tokens=self.config.memory_tokens, near=self.nearness.of, targets=targets)
        revised = {birth.point.uid: birth.revises[0] for birth in self.draft.births if birth.revises}
        numbered = sorted(((self._number(point, revised), point) for point in fitting.points), key=lambda one: one[0])
        return replace(
            fitting,
            points=tuple(point for _, point in numbered),
            numbers=tuple(number for number, _ in numbered),
        )

    def _number(self, point: MemoryPoint, revised: Mapping[str, str]) -> int:
        """Return a point's number: that of the point which it revises, or the next one if no prompt had either."""
        uid = point.uid
        while uid in revised:
            uid = revised[uid]
        return self.numbers.setdefault(uid, len(self.numbers))

    def hints(self) -> tuple[Entity, ...]:
        """Return neighbours of memory that it does not hold, those nearest to the question first.

        Unless hints are described, each is given once in a question.
        """
        if not self.config.hints:
            return ()
        own, told = self.draft.provisionals, self.progress.hinted
        held = {entity.uid for point in self.draft.points for entity in point.entities if entity.uid not in own}
        found = neighbours(
            self.services.database,
            scope=self.scope,
            uids=sorted(held),
            query=self.nearness.query,
            limits=(self.config.hints + len(told), self.config.hint_hub),
        )
        fresh = [entity for entity in found if entity.uid not in told][: self.config.hints]
        if not self.config.describe_hints:
            told.update(entity.uid for entity in fresh)
        return tuple(fresh)

    def outlook(self) -> Outlook:
        """Return which round this is, and which documents were read and which are near the question."""
        read: tuple[tuple[str, int], ...] = ()
        unread: tuple[str, ...] = ()
        if self.config.titles:
            read, unread = documents_beside(
                self.services.database,
                scope=self.scope,
                read=sorted(self.progress.read),
                query=self.nearness.query,
                limits=(self.config.titles, PROPOSED_NEAREST),
            )
        return Outlook(
            done=self.progress.done,
            rounds=self.progress.rounds,
            read=read,
            unread=unread,
            describe_hints=self.config.describe_hints,
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
    def may_merge(self) -> bool:
        """Whether this step may merge: from the second on."""
        return self.config.merge != "off" and self.draft.number > 1

    @property
    def merging(self) -> bool:
        """Whether this step merges now: where there is something to merge."""
        return self.may_merge and len(self.draft.points) > 1

    def apply(self, reply: Additions, memory: Shown) -> tuple[MemoryPoint | None, ...]:
        """Link names to entities, apply updates and inserts, and return the point of each insertion.

        An insertion that cites no chunk rests on those that mention its entities, which are read for that.
        """
        entities = resolve(
            self.services.database,
            names_of(reply),
            corpus=self.services.corpus,
            memory=self.draft.memory,
            known=known_entities(self.evidence, self.draft.points),
        )
        evidence = self.evidence
        if uncited(reply, evidence.numbered):
            evidence = with_mentions(self.services.database, evidence, corpus=self.services.corpus)
        born = self.draft.evolve(reply, shown=memory.points, chunks=evidence.numbered, entities=entities)
        if self.config.describe:
            self.notes += describe(self.services, self.draft, self.evidence)
        self._tell()
        return born

    def merge(self, reply: MergeReply, known: Sequence[MemoryPoint | None]) -> None:
        """Apply merges, whose indices refer to `known`."""
        self.draft.merge(reply, shown=known)
        self._tell()

    def next(self, verdict: Verdict, inquiries: Sequence[Inquiry], known: Sequence[MemoryPoint | None]) -> Next:
        """Return what a plan leads to. Its indices refer to `known`."""
        course = Course(
            concerns=self.config.concerns,
            strategies=self.config.strategies,
            judging=self.config.judging,
            previous=(self.question, *self.asked),
        )
        return following(verdict, inquiries, shown=known, living=self.draft.living, course=course)

    def _tell(self) -> None:
        said = {birth.point.uid: birth.point.description for birth in self.draft.births}
        for operation in self.draft.operations[self.told :]:
            described = said.get(operation.point, "")
            self.services.listener.emit(
                OperationApplied(step=self.draft.number, operation=operation, description=described)
            )
        self.told = len(self.draft.operations)
