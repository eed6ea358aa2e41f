"""Naive retrieval: one vector query on chunks, one answer. The first baseline, and the proof of the seam."""

import time
from dataclasses import asdict, dataclass, field

from hgmem.answer import AnswerQuestion
from hgmem.draft import Draft
from hgmem.errors import UsageError
from hgmem.events import StepStarted
from hgmem.graph.retrieval import near_chunks
from hgmem.inputs import Question
from hgmem.language import no_evidence
from hgmem.meter import measuring
from hgmem.model import Answer, Hit, Retrieved, Step, Subquery
from hgmem.recording import recording
from hgmem.rendering import Shown
from hgmem.retrieve import PROPOSED_NEAREST
from hgmem.services import Services, ready_corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveConfig:
    """How many chunks the answer is drawn from, and how many candidates the index proposes for them."""

    chunks: int = 10
    over: int = PROPOSED_NEAREST


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveSystem:
    """Answers from the chunks nearest to the question; its memory has one step and no points."""

    config: NaiveConfig = field(default_factory=NaiveConfig)

    def answer(self, services: Services, question: Question) -> Answer:
        """Return the answer, its memory written to Neo4j."""
        if question.memory:
            raise UsageError("the system 'naive' remembers nothing that could go on: ask anew, or choose hgmem")
        ready_corpus(services)
        with recording(services, system="naive", question=question, settings=asdict(self.config)) as record:
            began = time.perf_counter()
            services.listener.tell(StepStarted(step=1, subqueries=(Subquery(text=question.text),)))
            with measuring() as meter:
                vector = services.embed([question.text], kind="query")[0]
                found = near_chunks(
                    services.database,
                    scope=record.scope,
                    query=vector,
                    k=self.config.chunks,
                    over=max(self.config.over, self.config.chunks),
                )
            hits = tuple(
                Hit(uid=chunk.uid, rank=rank, score=score, source_id=chunk.source_id)
                for rank, (chunk, score) in enumerate(found, start=1)
            )
            retrieved = (Retrieved(subquery=Subquery(text=question.text), chunks=hits),)
            seconds = round(time.perf_counter() - began, 4)
            step = Step(
                number=1,
                question=question.text,
                strategy="global",
                filters=record.filters,
                retrieved=retrieved,
                seconds=seconds,
                usage=meter.usage(),
            )
            record.step(step, Draft(memory=record.claim.memory, number=1, points=()))
            if not found:
                return record.nothing(no_evidence(question.text), step=1)
            if not question.answer:
                return record.unanswered(step=1)
            task = AnswerQuestion(
                question=question.text,
                memory=Shown(),
                chunks=tuple(chunk for chunk, _ in found),
                language=services.language,
            )
            return record.answer(task, step=1)
