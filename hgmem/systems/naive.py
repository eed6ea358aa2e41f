"""Naive retrieval: one vector query on chunks, one answer. The first baseline, and the proof of the seam."""

import time
from dataclasses import asdict, dataclass, field

from hgmem.graph.retrieval import near_chunks
from hgmem.language import no_evidence
from hgmem.memory import Draft
from hgmem.meter import measuring
from hgmem.model import Answer, Hit, Retrieved, Step, Subquery
from hgmem.recording import recording
from hgmem.services import Services, ready_corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveConfig:
    """How many chunks the answer is drawn from, and how many candidates the index proposes for them."""

    chunks: int = 10
    over: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveSystem:
    """Answers from the chunks nearest to the question; its memory has one step and no points."""

    config: NaiveConfig = field(default_factory=NaiveConfig)

    @classmethod
    def configured(cls, *, steps: int | None) -> "NaiveSystem":
        """Return the system; it takes one step, whatever is asked for."""
        return cls()

    def answer(self, services: Services, question: str) -> Answer:
        """Return the answer, its memory written to Neo4j."""
        ready_corpus(services)
        with recording(services, system="naive", question=question, settings=asdict(self.config)) as record:
            began = time.perf_counter()
            with measuring() as meter:
                vector = services.embed([question], kind="query")[0]
                found = near_chunks(
                    services.database, corpus=services.corpus, query=vector, k=self.config.chunks, over=self.config.over
                )
            hits = tuple(
                Hit(uid=chunk.uid, rank=rank, score=score, source_id=chunk.source_id)
                for rank, (chunk, score) in enumerate(found, start=1)
            )
            retrieved = (Retrieved(subquery=Subquery(text=question), chunks=hits),)
            seconds = round(time.perf_counter() - began, 4)
            step = Step(
                number=1,
                question=question,
                strategy="global",
                retrieved=retrieved,
                seconds=seconds,
                usage=meter.usage(),
            )
            record.step(step, Draft(memory=record.claim.memory, number=1, points=()))
            if not found:
                return record.nothing(no_evidence(question))
            return record.answer((), [chunk for chunk, _ in found])
