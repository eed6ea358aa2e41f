"""One question at work: what its memory holds, what it asked and read, from step to step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hgmem.errors import UsageError
from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import documents_beside, neighbours
from hgmem.memory.recording import Recording
from hgmem.models.embedding import Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.answer import AnswerQuestion, cited_answer
from hgmem.retrieval.context_packing import fit_points, fits, in_order, traced
from hgmem.retrieval.entity_linking import with_mentions
from hgmem.retrieval.fusion import PROPOSED_NEAREST
from hgmem.retrieval.rendering import PromptMemory
from hgmem.retrieval.step_evidence import SMALL, Scene, gather
from hgmem.services import Services
from hgmem.systems.hgmem.answer_passages import RetrievedChunks
from hgmem.systems.hgmem.entity_selection import Look, with_chosen_entities
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.step import StepDraft
from hgmem.systems.hgmem.tasks.memory_changes import Evolve
from hgmem.systems.hgmem.tasks.planning import Round, WholeStep
from hgmem.text.language import no_evidence
from hgmem.values.events import EvidenceFound
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Answer, MemoryPoint, Step

HINT_HUB = 20  # relations that one entity of memory gives for hints, heaviest first


def no_graph(corpus: str) -> str:
    """Return the note of an answer from a corpus without entities."""
    return f"corpus {corpus!r} has no entities: for more than its chunks, run `hgmem index` without --no-graph"


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The state of one question between its steps. Its memory is the record's."""

    services: Services
    record: Recording
    config: HGMemConfig
    retrieved: RetrievedChunks
    entities: int  # |V_G|, counted up to where it matters
    query: Vectors  # of the question
    rounds: int  # of this question at most, those that memory has of it already included
    asked: list[str]
    scores: dict[str, float] = field(default_factory=dict)  # of memory points (uids), the cosine to the question
    hinted: set[str] = field(default_factory=set)  # entities (uids) that plans were told of once

    @classmethod
    def of(
        cls, services: Services, record: Recording, config: HGMemConfig, *, at_step: int | None = None
    ) -> "Investigation":
        """Return the question at the point at which its memory is, or was at the end of a step."""
        steps = record.steps if at_step is None else _until(record, at_step)
        same = [step for step in steps if step.question == record.question]
        retrieved = RetrievedChunks(
            services=services, scope=record.scope, config=config, of_question=bool(same) or at_step is None
        )
        retrieved.add_steps(same if at_step is None else same or steps, record.points)
        made = cls(
            services=services,
            record=record,
            config=config,
            retrieved=retrieved,
            entities=int(services.database.run("count_entities", corpus=services.corpus, most=SMALL)[0]["entities"]),
            query=services.embed([record.question], kind="query")[0],
            rounds=len(same) + config.steps,
            asked=[found.subquery.text for step in same for found in step.retrieved],
        )
        if not fits(record.points.active, tokens=config.memory_tokens):  # every prompt will choose by nearness
            made.score_points(record.points.active)
        return made

    def find(self, subqueries: Sequence[Subquery], number: int) -> tuple[Evidence, tuple[str, ...]]:
        """Retrieve the evidence of a step's sub-queries, count them as asked, and return it with notes."""
        texts = [subquery.text for subquery in subqueries]
        active, retrieval = self.record.points.active, self.config.retrieval
        if texts == [self.record.question]:  # a question may be about what an older memory covers already
            vectors = self.query[np.newaxis]
            retrieval = replace(retrieval, exclude=False)
        else:
            vectors = self.services.embed(texts, kind="query")
        scene = Scene(
            scope=self.record.scope,
            covered=len({entity.uid for point in active for entity in point.entities}),
            entities=self.entities,
            narrow=self.record.choice.narrow,
        )
        if self.config.select_entities:
            look = Look(services=self.services, memory=self.fitting(active), scene=scene, config=retrieval)
            evidence, notes = with_chosen_entities(subqueries, vectors, look=look)
        else:
            evidence, notes = gather(self.services.database, subqueries, vectors, scene=scene, config=retrieval)
        if self._reads_mentions():
            evidence = with_mentions(self.services.database, evidence, corpus=self.services.corpus)
        self.asked.extend(texts)
        self.retrieved.add(evidence)
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

    def draft(self, number: int, subqueries: tuple[Subquery, ...], evidence: Evidence, *, last: bool) -> StepDraft:
        """Return a step's draft, with the part of its evidence that prompts show. Its chunks count as read."""
        active = self.record.points.active
        return StepDraft(
            memory=self.record.lease.memory,
            number=number,
            before=active,
            config=self.config,
            subqueries=subqueries,
            evidence=traced(self.retrieved.add_visible(evidence, active)),
            last=last,
        )

    def fitting(self, points: Sequence[MemoryPoint], *, targets: Collection[str] = ()) -> PromptMemory:
        """Return the points that a prompt has room for."""
        return fit_points(points, tokens=self.config.memory_tokens, near=self.score_points, targets=targets)

    def score_points(self, points: Sequence[MemoryPoint]) -> list[float]:
        """Return the score of each point, in order, computed once. Stored points have their vectors in the database."""
        stored = len(self.record.points.by_uid)
        if not self.scores and stored:
            scope = self.record.scope
            self.scores = point_scores(
                self.services.database, corpus=scope.corpus, memory=scope.memory, query=self.query, most=stored
            )
        missing = [point for point in points if point.uid not in self.scores]
        if missing:
            vectors = self.services.embed([point.description for point in missing], kind="document")
            self.scores |= {point.uid: float(row @ self.query) for point, row in zip(missing, vectors, strict=True)}
        return [self.scores[point.uid] for point in points]

    def hints(self, draft: StepDraft) -> tuple[Entity, ...]:
        """Return neighbours of memory that it does not hold, those nearest to the question first.

        Those that a plan was told of once are left out.
        """
        if not self.config.hints:
            return ()
        involved = {entity.uid for point in draft.points for entity in point.entities}
        found = neighbours(
            self.services.database,
            scope=self.record.scope,
            uids=sorted(involved - draft.provisionals.keys()),
            query=self.query,
            limits=(self.config.hints + len(self.hinted), HINT_HUB),
        )
        return tuple([entity for entity in found if entity.uid not in self.hinted][: self.config.hints])

    def round(self, number: int) -> Round:
        """Return which round a step is, and which documents were read and which are near the question."""
        earlier = [step for step in self.record.steps if step.question == self.record.question and step.number < number]
        read: tuple[tuple[str, int], ...] = ()
        unread: tuple[str, ...] = ()
        if self.config.titles:
            read, unread = documents_beside(
                self.services.database,
                scope=self.record.scope,
                read=sorted(self.retrieved.read_uids),
                query=self.query,
                limits=(self.config.titles, PROPOSED_NEAREST),
            )
        return Round(
            done=len(earlier) + 1,
            rounds=self.rounds,
            read=read,
            unread=unread,
            describe_hints=self.config.describe_hints,
        )

    def answer(self, *, at_step: int | None = None, last: bool = True) -> Answer:
        """Write and return the answer from memory as it is now, or as it stood at the end of a step."""
        record, config = self.record, self.config
        step = record.steps[-1].number if at_step is None else at_step
        points = record.points.active if at_step is None else record.points.at(at_step)
        memory = self.fitting(points)
        passages = in_order(self.retrieved.drawn(points, record.points, query=self.query))
        if not points and not passages:
            return record.no_evidence(no_evidence(record.question), step=step)
        task = AnswerQuestion(
            question=record.question,
            memory=memory,
            passages=tuple(passages),
            form=config.form,
            language=self.services.language,
        )
        notes = () if points else ("memory has no points: the answer uses the evidence of the steps",)
        if not self.entities:
            notes = (*notes, no_graph(self.services.corpus))
        return record.answer(cited_answer(self.services, task), step=step, notes=notes, last=last)

    def _reads_mentions(self) -> bool:
        """Whether the rule-based model reads what a step found: it needs the entities that each chunk mentions."""
        readers = (Evolve.name, WholeStep.name, AnswerQuestion.name)
        return any(serving(self.services.model, name).name == ExtractiveModel.name for name in readers)


def _until(record: Recording, step: int) -> list[Step]:
    """Return the steps up to one. Raises `UsageError` if the memory doesn't have it."""
    steps = [earlier for earlier in record.steps if earlier.number <= step]
    if not steps or steps[-1].number != step:
        raise UsageError(f"memory {record.lease.memory!r} has no step {step}: its last one is {record.next_number - 1}")
    return steps
