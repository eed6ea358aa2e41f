"""One question at work: what its memory holds, what it asked and read, step by step."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hgmem.answer import AnswerQuestion
from hgmem.draft import Draft, Rules
from hgmem.embed import Vectors
from hgmem.errors import UsageError
from hgmem.events import EvidenceFound, StepStarted
from hgmem.excerpt import fits, shown, trimmed, unknown
from hgmem.following import Next
from hgmem.graph.entities import count_entities
from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import neighbours
from hgmem.language import no_evidence
from hgmem.meter import measuring
from hgmem.model import Answer, Entity, Evidence, MemoryPoint, Step, Subquery
from hgmem.recording import Recording
from hgmem.retrieve import SMALL, Scene, gather
from hgmem.services import Services
from hgmem.systems.reading import Reading
from hgmem.systems.recipes import HGMemConfig
from hgmem.systems.turns import CALLS, Turn, planned


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The state of a question between its steps; nothing of it is shared with another question."""

    services: Services
    record: Recording
    config: HGMemConfig
    reading: Reading
    entities: int  # |V_G|, counted up to where it matters
    query: Vectors  # of the question
    points: tuple[MemoryPoint, ...] = ()
    asked: list[str] = field(default_factory=list)
    nearness: dict[str, float] = field(default_factory=dict)  # of points to the question, by uid
    notes: tuple[str, ...] = ()  # of a plan that was made before the next step
    empty: bool = False

    @classmethod
    def of(cls, services: Services, record: Recording, config: HGMemConfig) -> "Investigation":
        """Return the question at the point at which its memory is."""
        same = [step for step in record.steps if step.question == record.question]
        reading = Reading(services=services, scope=record.scope)
        reading.remember(same)
        made = cls(
            services=services,
            record=record,
            config=config,
            reading=reading,
            entities=count_entities(services.database, corpus=services.corpus, most=SMALL),
            query=services.embed([record.question], kind="query")[0],
            points=tuple(point for point in record.points.values() if point.died is None),
            asked=[one.subquery.text for step in same for one in step.retrieved],
        )
        if not fits(made.points, tokens=config.memory_tokens):  # every prompt will choose by nearness
            made._near(made.points)
        return made

    def first(self) -> tuple[Subquery, ...]:
        """Return what to ask first: the question, or what the last step of the same question left to be asked."""
        last = self.record.steps[-1] if self.record.steps else None
        if last is None or last.question != self.record.question or not self.points:
            return (Subquery(text=self.record.question),)
        unanswered = (self.record.question, last.number) not in self.record.answered
        if last.planned or last.judgement == "sufficient" or unanswered:
            return last.planned
        # It was answered after the last step that it was allowed, which planned nothing.
        turn = self._turn(self._draft(last.number), Evidence(), subqueries=(), last=False)
        following = planned(turn)
        self.notes = (*turn.notes, *following.notes)
        return following.subqueries

    def step(self, subqueries: tuple[Subquery, ...], *, last: bool) -> tuple[Subquery, ...]:
        """Take one step and write it; return the sub-queries of the next, none where the loop ends."""
        began = time.perf_counter()
        draft = self._draft(self.record.number)
        self.services.listener.tell(StepStarted(step=draft.number, subqueries=subqueries))
        with measuring() as meter:
            evidence, notes = self._look(subqueries, draft.number)
            turn = self._turn(draft, self._shown(evidence), subqueries=subqueries, last=last)
            self.empty = not (evidence.entities or evidence.chunks or self.points)
            following = Next() if self.empty else CALLS[self.config.calls](turn)
        step = Step(
            number=draft.number,
            question=self.record.question,
            strategy="local" if any(one.subquery.targets for one in evidence.retrieved) else "global",
            judgement=following.judgement,
            filters=self.record.filters,
            retrieved=evidence.retrieved,
            operations=tuple(draft.operations),
            planned=following.subqueries,
            notes=(*self.notes, *notes, *turn.notes, *following.notes),
            seconds=round(time.perf_counter() - began, 4),
            usage=meter.usage(),
        )
        self.record.step(step, draft)
        self.notes = ()
        self.points = draft.points
        return following.subqueries

    def answer(self, *, last: bool = True) -> Answer:
        """Return the answer from memory as it is now."""
        return self._answered(self.points, self.record.steps[-1].number, last=last)

    def answer_at(self, step: int) -> Answer:
        """Return the answer from memory as it stood at the end of a step, without a new one."""
        steps = [one for one in self.record.steps if one.number <= step]
        if not steps or steps[-1].number != step:
            raise UsageError(
                f"memory {self.record.claim.memory!r} has no step {step}: its last one is {self.record.number - 1}"
            )
        self.reading = Reading(services=self.services, scope=self.record.scope)
        self.reading.remember([one for one in steps if one.question == self.record.question] or steps)
        return self._answered([point for point in self.record.points.values() if point.alive(step)], step, last=True)

    def _answered(self, points: Sequence[MemoryPoint], step: int, *, last: bool) -> Answer:
        memory = shown(points, tokens=self.config.memory_tokens, near=self._near)
        passages = self.reading.passages(points, query=self.query, config=self.config)
        if not points and not passages:
            return self.record.nothing(no_evidence(self.record.question), step=step)
        task = AnswerQuestion(
            question=self.record.question,
            memory=memory,
            chunks=tuple(passages),
            form=self.config.form,
            language=self.services.language,
        )
        notes = () if points else ("no point was remembered: the answer is drawn from the evidence",)
        return self.record.answer(task, step=step, notes=notes, last=last)

    def _draft(self, number: int) -> Draft:
        rules = Rules(update=self.config.update, merge=self.config.merge)
        return Draft(memory=self.record.claim.memory, number=number, points=self.points, rules=rules)

    def _turn(self, draft: Draft, evidence: Evidence, *, subqueries: tuple[Subquery, ...], last: bool) -> Turn:
        return Turn(
            services=self.services,
            config=self.config,
            question=self.record.question,
            asked=tuple(self.asked),
            draft=draft,
            subqueries=subqueries,
            evidence=evidence,
            last=last,
            near=self._near,
            beside=self._hints,
        )

    def _look(self, subqueries: Sequence[Subquery], number: int) -> tuple[Evidence, tuple[str, ...]]:
        texts = [asked.text for asked in subqueries]
        known = texts == [self.record.question]
        vectors = self.query[np.newaxis] if known else self.services.embed(texts, kind="query")
        covered = {entity.uid for point in self.points for entity in point.entities}
        scene = Scene(
            scope=self.record.scope,
            covered=len(covered),
            entities=self.entities,
            narrow=self.record.choice.narrow,
        )
        retrieval = self.config.retrieval
        if texts == [self.record.question]:  # a question may be about what an older memory covers already
            retrieval = replace(retrieval, exclude=False)
        evidence, notes = gather(self.services.database, subqueries, vectors, scene=scene, config=retrieval)
        self.asked.extend(texts)
        self.reading.add(evidence)
        self.services.listener.tell(
            EvidenceFound(
                step=number,
                strategy="local" if any(one.subquery.targets for one in evidence.retrieved) else "global",
                entities=len(evidence.entities),
                relations=len(evidence.relations),
                chunks=len(evidence.chunks),
                names=tuple(entity.name for entity in evidence.entities),
            )
        )
        return evidence, notes

    def _shown(self, evidence: Evidence) -> Evidence:
        """Return the part of the evidence that a prompt shows."""
        fresh = unknown(evidence, self.points) if self.config.only_new else evidence
        return trimmed(fresh, tokens=self.config.evidence_tokens)

    def _near(self, points: Sequence[MemoryPoint]) -> list[float]:
        """Return how near each point is to the question: those that are stored have a vector already."""
        stored = len(self.record.points)
        if not self.nearness and stored:
            scope = self.record.scope
            self.nearness = point_scores(
                self.services.database, corpus=scope.corpus, memory=scope.memory, query=self.query, most=stored
            )
        missing = [point for point in points if point.uid not in self.nearness]
        if missing:
            made = self.services.embed([point.description for point in missing], kind="document")
            self.nearness |= {point.uid: float(one @ self.query) for point, one in zip(missing, made, strict=True)}
        return [self.nearness[point.uid] for point in points]

    def _hints(self, draft: Draft) -> tuple[Entity, ...]:
        held = {
            entity.uid for point in draft.points for entity in point.entities if entity.uid not in draft.provisionals
        }
        return neighbours(
            self.services.database,
            scope=self.record.scope,
            uids=sorted(held),
            query=self.query,
            limits=(self.config.hints, self.config.hint_hub),
        )
