"""One question at work: what its memory holds, what it asked and read, step by step."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hgmem.errors import UsageError
from hgmem.graph.entities import count_entities
from hgmem.memory.recording import Recording
from hgmem.models.metering import measuring
from hgmem.retrieval.answer import AnswerQuestion, cited_answer
from hgmem.retrieval.context_packing import fits, shown, traced
from hgmem.retrieval.entity_linking import with_mentions
from hgmem.retrieval.step_evidence import SMALL, Scene, gather
from hgmem.services import Services
from hgmem.systems.hgmem.answer_passages import Lineages, Reading, on_show
from hgmem.systems.hgmem.draft import Draft, Rules
from hgmem.systems.hgmem.entity_selection import Look, with_chosen_entities
from hgmem.systems.hgmem.model_calls import CALLS, planned, reads_mentions
from hgmem.systems.hgmem.query_planning import Next
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.turn import Nearness, Progress, Turn
from hgmem.text.language import no_evidence
from hgmem.values.events import EvidenceFound, StepStarted
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.records import Answer, MemoryPoint, Step


def no_graph(corpus: str) -> str:
    """Return the note of an answer from a corpus without entities."""
    return f"corpus {corpus!r} has no entities: for more than its chunks, run `hgmem index` without --no-graph"


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The state of one question between its steps."""

    services: Services
    record: Recording
    config: HGMemConfig
    reading: Reading
    entities: int  # |V_G|, counted up to where it matters
    nearness: Nearness  # of memory points to the question
    rounds: int  # of this question at most, those that memory has of it already included
    asked: list[str] = field(default_factory=list)
    hinted: set[str] = field(default_factory=set)  # entities (uids) that plans were told of
    notes: tuple[str, ...] = ()  # of a plan that was made before the next step
    empty: bool = False

    @classmethod
    def of(cls, services: Services, record: Recording, config: HGMemConfig) -> "Investigation":
        """Return the question at the point at which its memory is."""
        same = [step for step in record.steps if step.question == record.question]
        reading = Reading(services=services, scope=record.scope)
        reading.remember(same, points=list(record.points.values()), config=config)
        made = cls(
            services=services,
            record=record,
            config=config,
            reading=reading,
            entities=count_entities(services.database, corpus=services.corpus, most=SMALL),
            nearness=Nearness(
                services=services, record=record, query=services.embed([record.question], kind="query")[0]
            ),
            rounds=len(same) + config.steps,
            asked=[one.subquery.text for step in same for one in step.retrieved],
        )
        if not fits(record.active, tokens=config.memory_tokens):  # every prompt will choose by nearness
            made.nearness.of(record.active)
        return made

    def first(self) -> tuple[Subquery, ...]:
        """Return what to ask first: the question, or what the last step of the same question left to be asked."""
        last = self.record.steps[-1] if self.record.steps else None
        if last is None or last.question != self.record.question or not self.record.active:
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
        """Take one step, write it, and return the sub-queries of the next, none where the loop ends."""
        began = time.perf_counter()
        draft = self._draft(self.record.number)
        self.services.listener.emit(StepStarted(step=draft.number, subqueries=subqueries))
        with measuring() as meter:
            evidence, notes = self._look(subqueries, draft.number)
            turn = self._turn(draft, self._shown(evidence), subqueries=subqueries, last=last)
            self.empty = evidence.empty and not draft.points
            following = Next() if self.empty else CALLS[self.config.calls](turn)
        step = Step(
            number=draft.number,
            question=self.record.question,
            strategy=evidence.strategy,
            judgement=following.judgement,
            filters=self.record.filters,
            retrieved=evidence.retrieved,
            operations=tuple(draft.operations),
            planned=following.subqueries,
            notes=(*self.notes, *notes, *turn.notes, *following.notes),
            seconds=round(time.perf_counter() - began, 4),
            usage=meter.usage(),
        )
        self.record.step(step, draft.changes())
        self.notes = ()
        return following.subqueries

    def answer(self, *, last: bool = True) -> Answer:
        """Return the answer from memory as it is now."""
        return self._answered(self.record.active, self.record.steps[-1].number, last=last)

    def answer_at(self, step: int) -> Answer:
        """Return the answer from memory as it stood at the end of a step, without a new one."""
        steps = [one for one in self.record.steps if one.number <= step]
        if not steps or steps[-1].number != step:
            raise UsageError(
                f"memory {self.record.lease.memory!r} has no step {step}: its last one is {self.record.number - 1}"
            )
        same = [one for one in steps if one.question == self.record.question]
        self.reading = Reading(services=self.services, scope=self.record.scope, of_question=bool(same))
        self.reading.remember(same or steps, points=list(self.record.points.values()), config=self.config)
        return self._answered([point for point in self.record.points.values() if point.alive(step)], step, last=True)

    def _answered(self, points: Sequence[MemoryPoint], step: int, *, last: bool) -> Answer:
        memory = shown(points, tokens=self.config.memory_tokens, near=self.nearness.of)
        self.reading.lineages = Lineages.of(self.record.points.values(), self.record.steps)
        passages = self.reading.passages(points, query=self.nearness.query, config=self.config)
        if not points and not passages:
            return self.record.nothing(no_evidence(self.record.question), step=step)
        task = AnswerQuestion(
            question=self.record.question,
            memory=memory,
            passages=tuple(passages),
            form=self.config.form,
            language=self.services.language,
        )
        notes = () if points else ("memory has no points: the answer uses the evidence of the steps",)
        if not self.entities:
            notes = (*notes, no_graph(self.services.corpus))
        return self.record.answer(cited_answer(self.services, task), step=step, notes=notes, last=last)

    def _draft(self, number: int) -> Draft:
        rules = Rules(update=self.config.update, merge=self.config.merge)
        return Draft(memory=self.record.lease.memory, number=number, points=self.record.active, rules=rules)

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
            nearness=self.nearness,
            scope=self.record.scope,
            progress=self._progress(draft.number),
        )

    def _progress(self, number: int) -> Progress:
        earlier = [one for one in self.record.steps if one.question == self.record.question and one.number < number]
        return Progress(done=len(earlier) + 1, rounds=self.rounds, read=self.reading.shown, hinted=self.hinted)

    def _look(self, subqueries: Sequence[Subquery], number: int) -> tuple[Evidence, tuple[str, ...]]:
        texts = [asked.text for asked in subqueries]
        known = texts == [self.record.question]
        vectors = self.nearness.query[np.newaxis] if known else self.services.embed(texts, kind="query")
        covered = {entity.uid for point in self.record.active for entity in point.entities}
        scene = Scene(
            scope=self.record.scope,
            covered=len(covered),
            entities=self.entities,
            narrow=self.record.choice.narrow,
        )
        retrieval = self.config.retrieval
        if texts == [self.record.question]:  # a question may be about what an older memory covers already
            retrieval = replace(retrieval, exclude=False)
        if self.config.select_entities:
            memory = shown(self.record.active, tokens=self.config.memory_tokens, near=self.nearness.of)
            look = Look(services=self.services, memory=memory, scene=scene, config=retrieval)
            evidence, notes = with_chosen_entities(subqueries, vectors, look=look)
        else:
            evidence, notes = gather(self.services.database, subqueries, vectors, scene=scene, config=retrieval)
        if reads_mentions(self.services.model):
            evidence = with_mentions(self.services.database, evidence, corpus=self.services.corpus)
        self.asked.extend(texts)
        self.reading.add(evidence)
        self.services.listener.emit(
            EvidenceFound(
                step=number,
                strategy=evidence.strategy,
                entities=len(evidence.entities),
                relations=len(evidence.relations),
                chunks=len(evidence.chunks),
                names=tuple(entity.name for entity in evidence.entities),
            )
        )
        return evidence, notes

    def _shown(self, evidence: Evidence) -> Evidence:
        """Return the part of the evidence that a prompt shows."""
        told = on_show(evidence, self.record.active, config=self.config, read=self.reading.shown)
        self.reading.shown |= {chunk.uid for chunk in told.chunks}
        return traced(told)
