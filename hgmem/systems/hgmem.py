"""HGMem: a working memory that is a hypergraph, evolved step by step (HGMem, 2025, sections 3.1 to 3.4).

One step: retrieve evidence for the sub-queries → evolve memory (update, insert) → merge points → plan: sufficient,
dig into named points (local investigation) or look where memory has nothing (global exploration, V_G − V_M) →
sub-queries of the next step. Then the answer, from the living points and their chunks.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from hgmem.embed import Vectors
from hgmem.graph.entities import count_entities
from hgmem.graph.retrieval import neighbours
from hgmem.language import no_evidence
from hgmem.memory import Draft, Evolve, Merge, names_of
from hgmem.meter import measuring
from hgmem.model import Answer, Chunk, Entity, Evidence, MemoryPoint, Step, Subquery
from hgmem.names import at_hand, resolve
from hgmem.plan import Next, Plan, PlanReply, Subqueries, aligned
from hgmem.recording import Recording, recording
from hgmem.retrieve import SMALL, RetrievalConfig, Scene, gather
from hgmem.services import Services, ready_corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class HGMemConfig:
    """How far a question goes: the paper's t runs from 0 to `steps` − 1."""

    steps: int = 3  # the most steps of one question (paper: best at t = 3, four steps; section 4.4)
    concerns: int = 3  # the most concerns, and so sub-queries, of one plan
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    hints: int = 5  # entities beside memory that a plan is told of, 0 for none (official code; paper: none)
    hint_hub: int = 20  # relations that one entity of memory gives for hints, heaviest first
    answer_chunks: int = 20  # evidence chunks of the answer, those that support living points first


@dataclass(frozen=True, slots=True, kw_only=True)
class HGMemSystem:
    """Answers from a hypergraph memory that grows with each step."""

    config: HGMemConfig = field(default_factory=HGMemConfig)

    @classmethod
    def configured(cls, *, steps: int | None) -> "HGMemSystem":
        """Return the system with this many steps at most."""
        return cls(config=HGMemConfig(steps=steps) if steps else HGMemConfig())

    def answer(self, services: Services, question: str) -> Answer:
        """Return the answer, its memory written to Neo4j."""
        ready_corpus(services)
        with recording(services, system="hgmem", question=question, settings=asdict(self.config)) as record:
            entities = count_entities(services.database, corpus=services.corpus, most=SMALL)
            work = _Work(services=services, record=record, question=question, config=self.config, entities=entities)
            subqueries: tuple[Subquery, ...] = (Subquery(text=question),)
            for number in range(1, self.config.steps + 1):
                subqueries = work.step(number, subqueries)
                if work.empty:
                    return record.nothing(no_evidence(question))
                if not subqueries:
                    break
            notes = () if work.points else ("no point was remembered: the answer is drawn from the evidence",)
            return record.answer(work.points, work.answer_chunks(), notes=notes)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One question at work: what memory holds, what was asked, what was read."""

    services: Services
    record: Recording
    question: str
    config: HGMemConfig
    entities: int  # |V_G|, counted up to where it matters
    points: tuple[MemoryPoint, ...] = ()
    asked: list[str] = field(default_factory=list)
    read: dict[str, tuple[float, Chunk]] = field(default_factory=dict)
    asked_vector: Vectors | None = None
    empty: bool = False

    def step(self, number: int, subqueries: tuple[Subquery, ...]) -> tuple[Subquery, ...]:
        """Take one step and write it; return the sub-queries of the next, none where the loop ends."""
        began = time.perf_counter()
        with measuring() as meter:
            evidence, notes = self._look(subqueries)
            draft = Draft(memory=self.record.claim.memory, number=number, points=self.points)
            following = Next(judgement=None, subqueries=(), notes=())
            if evidence.entities or evidence.chunks or self.points:
                self._remember(draft, subqueries, evidence)
                if number < self.config.steps:
                    following = self._plan(draft)
            else:
                self.empty = True
        step = Step(
            number=number,
            question=self.question,
            strategy="local" if any(one.subquery.targets for one in evidence.retrieved) else "global",
            judgement=following.judgement,
            retrieved=evidence.retrieved,
            operations=tuple(draft.operations),
            notes=(*notes, *following.notes),
            seconds=round(time.perf_counter() - began, 4),
            usage=meter.usage(),
        )
        self.record.step(step, draft)
        self.points = draft.points
        return following.subqueries

    def answer_chunks(self) -> list[Chunk]:
        """Return the evidence of the answer in order of document and position: supports of living points first."""
        supports = {uid for point in self.points for uid in point.chunks}
        ranked = sorted(self.read, key=lambda uid: (uid not in supports, -self.read[uid][0], uid))
        chosen = [self.read[uid][1] for uid in ranked[: self.config.answer_chunks]]
        return sorted(chosen, key=lambda chunk: (chunk.document, chunk.position, chunk.uid))

    def _look(self, subqueries: Sequence[Subquery]) -> tuple[Evidence, tuple[str, ...]]:
        vectors = self.services.embed([asked.text for asked in subqueries], kind="query")
        if not self.asked:
            self.asked_vector = vectors[0]  # of the question, which is the first sub-query
        covered = {entity.uid for point in self.points for entity in point.entities}
        scene = Scene(
            corpus=self.services.corpus,
            memory=self.record.claim.memory,
            covered=len(covered),
            entities=self.entities,
        )
        evidence, notes = gather(self.services.database, subqueries, vectors, scene=scene, config=self.config.retrieval)
        self.asked.extend(asked.text for asked in subqueries)
        scores = {hit.uid: hit.score for one in evidence.retrieved for hit in one.chunks}
        for chunk in evidence.chunks:
            best = max(scores[chunk.uid], self.read.get(chunk.uid, (-1.0, chunk))[0])
            self.read[chunk.uid] = (best, chunk)
        return evidence, notes

    def _remember(self, draft: Draft, subqueries: Sequence[Subquery], evidence: Evidence) -> None:
        texts = tuple(asked.text for asked in subqueries if asked.text != self.question)
        reply = self.services.reply(
            Evolve(question=self.question, subqueries=texts, points=draft.points, evidence=evidence)
        )
        entities = resolve(
            self.services.database,
            names_of(reply),
            corpus=self.services.corpus,
            memory=self.record.claim.memory,
            known=at_hand(evidence, draft.points),
        )
        draft.evolve(reply, chunks=evidence.chunks, entities=entities)
        if draft.number > 1 and len(draft.points) > 1:
            draft.merge(self.services.reply(Merge(question=self.question, points=draft.points)))

    def _plan(self, draft: Draft) -> Next:
        asked = tuple(text for text in self.asked if text != self.question)
        hints = self._hints(draft)
        plan = self.services.reply(
            Plan(
                question=self.question,
                points=draft.points,
                previous=asked,
                hints=hints,
                concerns=self.config.concerns,
            )
        )
        if plan.judgement == "sufficient" or not plan.concerns:
            wanting = plan.judgement != "sufficient"
            return Next(
                judgement=plan.judgement,
                subqueries=(),
                notes=("the plan names no concern, so the loop ends",) if wanting else (),
            )
        surplus = len(plan.concerns) - self.config.concerns
        notes = (f"{surplus} concerns beyond {self.config.concerns} were dropped",) if surplus > 0 else ()
        plan = PlanReply(judgement=plan.judgement, concerns=plan.concerns[: self.config.concerns])
        reply = self.services.reply(
            Subqueries(question=self.question, points=draft.points, concerns=plan.concerns, previous=asked, hints=hints)
        )
        following = aligned(plan, reply, points=draft.points, previous=self.asked)
        return replace(following, notes=(*notes, *following.notes))

    def _hints(self, draft: Draft) -> tuple[Entity, ...]:
        if not self.config.hints:
            return ()
        held = {
            entity.uid for point in draft.points for entity in point.entities if entity.uid not in draft.provisionals
        }
        return neighbours(
            self.services.database,
            scope=(self.services.corpus, self.record.claim.memory),
            uids=sorted(held),
            query=self.asked_vector,
            limits=(self.config.hints, self.config.hint_hub),
        )
