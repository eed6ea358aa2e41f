"""Recording: what a system does with a question, written to Neo4j step by step under a claim."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from hgmem.answer import AnswerQuestion, Cited, cite
from hgmem.claims import renewing
from hgmem.embed import Vectors
from hgmem.errors import GraphError, HGMemError
from hgmem.graph.memory import Claim, create_memory, release_memory, renew_memory, write_answer, write_step
from hgmem.graph.values import to_json
from hgmem.memory import Draft
from hgmem.meter import Meter, measuring
from hgmem.model import Answer, Chunk, MemoryPoint, Step
from hgmem.services import Services


@dataclass(slots=True, kw_only=True)
class Recording:
    """One question's memory while it is being written: whole steps, then an answer."""

    services: Services
    claim: Claim
    system: str
    question: str
    meter: Meter
    began: float
    steps: list[Step] = field(default_factory=list)
    points: dict[str, MemoryPoint] = field(default_factory=dict)

    def step(self, step: Step, draft: Draft) -> None:
        """Write one step with what it did to memory, in one transaction."""
        write_step(self.services.database, claim=self.claim, step=step, draft=draft, vectors=self._vectors(draft))
        self.steps.append(step)
        self.points |= {birth.point.uid: birth.point for birth in draft.births}
        for uid in draft.died:
            self.points[uid] = replace(self.points[uid], died=draft.number)

    def answer(self, points: Sequence[MemoryPoint], chunks: Sequence[Chunk], *, notes: Sequence[str] = ()) -> Answer:
        """Return the answer drawn from points and chunks, its citations checked, written with them."""
        task = AnswerQuestion(question=self.question, points=tuple(points), chunks=tuple(chunks))
        cited = cite(self.services.reply(task).text, chunks)
        return self._finish(cited, status="answered", notes=notes)

    def nothing(self, text: str) -> Answer:
        """Return the answer that says that there is no evidence, written without a model call."""
        return self._finish(Cited(text=text, citations=(), notes=()), status="no_evidence", notes=())

    def _finish(self, cited: Cited, *, status: str, notes: Sequence[str]) -> Answer:
        step = self.steps[-1].number
        answer = Answer(
            uid=f"{self.claim.memory}-answer-{step}-{secrets.token_hex(3)}",
            question=self.question,
            text=cited.text,
            status=status,
            corpus=self.claim.corpus,
            system=self.system,
            memory=self.claim.memory,
            model=self.services.model.name,
            step=step,
            citations=cited.citations,
            points=tuple(self.points.values()),
            steps=tuple(self.steps),
            notes=(*notes, *cited.notes),
            usage=self.meter.usage(),
            seconds=round(time.perf_counter() - self.began, 4),
        )
        write_answer(self.services.database, claim=self.claim, answer=answer)
        return answer

    def _vectors(self, draft: Draft) -> Mapping[str, Vectors]:
        texts = {birth.point.uid: birth.point.description for birth in draft.births}
        texts |= {entity.uid: f"{entity.name}: {entity.description}" for entity in draft.provisionals.values()}
        if not texts:
            return {}
        return dict(zip(texts, self.services.embed(list(texts.values()), kind="document"), strict=True))


@contextmanager
def recording(services: Services, *, system: str, question: str, settings: Mapping[str, object]) -> Iterator[Recording]:
    """Yield a new memory, held by this run until the block ends; one that ends early keeps its whole steps."""
    claim = Claim(corpus=services.corpus, memory=f"m{secrets.token_hex(8)}", run=secrets.token_hex(8))
    properties = {"system": system, "model": services.model.name, "question": question, "settings": to_json(settings)}
    with measuring() as meter:
        began = time.perf_counter()
        create_memory(services.database, claim=claim, properties=properties)
        try:
            with renewing(lambda: renew_memory(services.database, claim=claim), every=services.settings.heartbeat):
                yield Recording(
                    services=services, claim=claim, system=system, question=question, meter=meter, began=began
                )
        except BaseException as error:
            if not (isinstance(error, GraphError) and error.retryable):  # no server: the claim runs out by itself
                with suppress(HGMemError):
                    release_memory(services.database, claim=claim, status="interrupted")
            raise
