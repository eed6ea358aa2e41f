"""One question at work: what its memory holds, what it asked, found and read, from step to step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hgmem.errors import BadReplyError, UsageError
from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import documents_beside, neighbours
from hgmem.memory.recording import Recording
from hgmem.models.embedding import Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.reply import Reply
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.entity_linking import with_mentions
from hgmem.retrieval.fusion import PROPOSED_NEAREST
from hgmem.retrieval.rendering import PromptMemory, fit_points, fits, in_order, traced
from hgmem.retrieval.step_evidence import CANDIDATES, SMALL, RetrievalConfig, Scene, gather
from hgmem.services import Services
from hgmem.systems.hgmem.answer_passages import RetrievedChunks
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.step import StepDraft
from hgmem.systems.hgmem.tasks import Evolve, Round, SelectEntities, WholeStep
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Answer, MemoryPoint
from hgmem.values.task import Task

R = TypeVar("R", bound=Reply)

HINT_HUB = 20  # relations that one entity of memory gives for hints, heaviest first
MORE = 5  # entities that a model may add to a sub-query's (official code)


def replied(services: Services, task: Task[R]) -> tuple[R | None, list[str]]:
    """Return the model's reply, or None if it is unusable, and notes on what was left out."""
    try:
        reply = services.reply(task)
    except BadReplyError as error:
        return None, [f"{task.name}: no usable reply ({error})"]
    return reply, [f"{task.name}: {note}" for note in reply.notes]


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
    def of(cls, services: Services, record: Recording, config: HGMemConfig) -> "Investigation":
        """Return the question at the point at which its memory is, or was at the end of a step."""
        at_step = record.at_step
        steps = [step for step in record.steps if at_step is None or step.number <= at_step]
        if at_step is not None and (not steps or steps[-1].number != at_step):
            raise UsageError(
                f"memory {record.lease.memory!r} has no step {at_step}: its last one is {record.next_number - 1}"
            )
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
            entities=services.database.run("count_entities", corpus=services.corpus, most=SMALL)[0]["entities"],
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
        database = self.services.database
        if self.config.select_entities:
            subqueries, scene, notes = self._selecting(subqueries, vectors, scene, retrieval)
            wider = replace(retrieval, entities=retrieval.entities + MORE)
            evidence, _ = gather(database, subqueries, vectors, scene=scene, config=wider)
        else:
            evidence, notes = gather(database, subqueries, vectors, scene=scene, config=retrieval)
        # The rule-based model needs the entities that each chunk mentions.
        readers = (Evolve.name, WholeStep.name, AnswerQuestion.name)
        if any(serving(self.services.model, name).name == ExtractiveModel.name for name in readers):
            evidence = with_mentions(database, evidence, corpus=self.services.corpus)
        self.asked.extend(texts)
        self.retrieved.add(evidence)
        self.record.tell_evidence(evidence, step=number)
        return evidence, notes

    def _selecting(
        self, subqueries: Sequence[Subquery], vectors: Vectors, scene: Scene, config: RetrievalConfig
    ) -> tuple[Sequence[Subquery], Scene, tuple[str, ...]]:
        """Return sub-queries and scene with entities that a model adds, and notes (official code, `llm_selection`).

        Of the 20 nearest entities a sub-query keeps the first `config.entities` and those that a model selects of the
        rest. Relations and chunks are then to be gathered around both. A sub-query is global where nothing was around
        its points.
        """
        most = max(CANDIDATES, config.entities)
        wide = replace(config, entities=most, relations=0, chunks=0, searched_chunks=0, chunk_search="off")
        found, notes = gather(self.services.database, subqueries, vectors, scene=scene, config=wide)
        entities = {entity.uid: entity for entity in found.entities}
        chosen = []
        for retrieved in found.retrieved:
            near = [entities[hit.uid] for hit in retrieved.entities]
            kept, rest = near[: config.entities], near[config.entities :]
            selected, selecting = self._selected(retrieved.subquery.text, rest) if rest else ((), ())
            notes = (*notes, *selecting)
            chosen.append(tuple(entity.uid for entity in (*kept, *selected)))
        return [retrieved.subquery for retrieved in found.retrieved], replace(scene, chosen=tuple(chosen)), notes

    def _selected(self, subquery: str, candidates: Sequence[Entity]) -> tuple[Sequence[Entity], Sequence[str]]:
        memory = self.fitting(self.record.points.active)
        task = SelectEntities(subquery=subquery, memory=memory, candidates=tuple(candidates), most=MORE)
        reply, notes = replied(self.services, task)
        if reply is None:
            return (), notes
        numbers = list(dict.fromkeys(at for at in reply.selected if 0 <= at < len(candidates)))
        unknown = sorted(set(reply.selected) - set(numbers))
        notes += [f"{task.name}: candidate {at} does not exist" for at in unknown]
        if len(numbers) > MORE:
            notes.append(f"{task.name}: {len(numbers) - MORE} candidates beyond {MORE} were dropped")
        return [candidates[at] for at in numbers[:MORE]], notes

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
            asked=(self.record.question, *self.asked),
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

    def answer(self, *, last: bool = True) -> Answer:
        """Write and return the answer from memory as it is now, or as it stood at the end of a step."""
        record, config = self.record, self.config
        points = record.points.active if record.at_step is None else record.points.at(record.at_step)
        memory = self.fitting(points)
        passages = in_order(self.retrieved.drawn(points, record.points, query=self.query))
        if not points and not passages:
            return record.no_evidence()
        notes = () if points else ("memory has no points: the answer uses the evidence of the steps",)
        if not self.entities:
            corpus = self.services.corpus
            lacking = (
                f"corpus {corpus!r} has no entities: for more than its chunks, run `hgmem index` without --no-graph"
            )
            notes = (*notes, lacking)
        return record.answer(memory, passages, form=config.form, notes=notes, last=last)
