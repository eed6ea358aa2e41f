"""Naive retrieval: one vector query on chunks, one answer. The first baseline, and the proof of the seam."""

import time
from dataclasses import asdict, dataclass, field

from hgmem.errors import UsageError
from hgmem.graph.retrieval import near_chunks
from hgmem.memory.recording import recording
from hgmem.models.metering import measuring
from hgmem.retrieval.answer import AnswerQuestion, cited_answer
from hgmem.retrieval.rendering import Shown
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services, ready_corpus
from hgmem.text.language import no_evidence
from hgmem.values.events import StepStarted
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveConfig:
    """How many chunks the answer is drawn from, and how many candidates the index proposes for them."""

    chunks: int = 10
    over: int = PROPOSED_NEAREST


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveSystem:
    """Answers from the chunks nearest to the question. Its memory has one step and no points."""

    config: NaiveConfig = field(default_factory=NaiveConfig)

    def answer(self, services: Services, question: Question) -> Answer:
        """Return the answer, its memory written to Neo4j."""
        if question.memory:
            raise UsageError(
                "a memory of system 'naive' cannot be continued: ask a new question, or use system 'hgmem'"
            )
        ready_corpus(services)
        with recording(services, system="naive", question=question, settings=asdict(self.config)) as record:
            began = time.perf_counter()
            services.listener.emit(StepStarted(step=1, subqueries=(Subquery(text=question.text),)))
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
            subquery = Subquery(text=question.text)
            evidence = Evidence(
                retrieved=(Retrieved(subquery=subquery, chunks=hits),), chunks=tuple(chunk for chunk, _ in found)
            )
            seconds = round(time.perf_counter() - began, 4)
            step = Step(
                number=1,
                question=question.text,
                strategy=evidence.strategy,
                filters=record.filters,
                retrieved=evidence.retrieved,
                seconds=seconds,
                usage=meter.usage(),
            )
            record.step(step)
            if evidence.empty:
                return record.nothing(no_evidence(question.text), step=1)
            if not question.answer:
                return record.unanswered(step=1)
            task = AnswerQuestion(
                question=question.text,
                memory=Shown(),
                chunks=evidence.chunks,
                language=services.language,
            )
            return record.answer(cited_answer(services, task), step=1)
