"""Recording: what a system does with a question, written to Neo4j step by step under a claim."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from hgmem.answer import AnswerQuestion, Cited, cite
from hgmem.claims import renewing
from hgmem.contributions import entity_text, own_relation_text
from hgmem.draft import Draft
from hgmem.embed import Vectors
from hgmem.errors import HGMemError, UnreachableError, UsageError
from hgmem.events import Answered, Planned, QuestionAccepted
from hgmem.filtering import Choice, choose, misfit
from hgmem.graph.entities import missing_entity_vectors, put_entity_vectors
from hgmem.graph.memory import (
    Claim,
    claim_memory,
    create_memory,
    memory_answers,
    memory_points,
    memory_steps,
    release_memory,
    renew_memory,
    write_answer,
    write_step,
)
from hgmem.graph.retrieval import Scope
from hgmem.graph.values import to_json
from hgmem.inputs import Question
from hgmem.meter import Meter, measuring
from hgmem.model import INTERRUPTED, RUNNING, UNANSWERED, Answer, MemoryPoint, Step
from hgmem.services import Services


@dataclass(slots=True, kw_only=True)
class Recording:
    """One question's memory while it is being written: whole steps, then an answer.

    `steps` and `points` (by uid, dead ones too) hold what the memory had before as well, where it goes on.
    """

    services: Services
    claim: Claim
    system: str
    question: str
    meter: Meter
    began: float
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    choice: Choice = field(default_factory=Choice)  # the documents that the filters leave
    status: str = RUNNING  # that the memory falls back to where nothing is written
    steps: list[Step] = field(default_factory=list)
    points: dict[str, MemoryPoint] = field(default_factory=dict)
    answered: set[tuple[str, int]] = field(default_factory=set)  # questions answered before, and at which step

    @property
    def scope(self) -> Scope:
        """Where this question looks."""
        return Scope(corpus=self.claim.corpus, memory=self.claim.memory, documents=self.choice.documents)

    def choose(self) -> None:
        """Find the documents that the filters leave."""
        self.choice = choose(self.services.database, self.filters, corpus=self.claim.corpus)

    @property
    def number(self) -> int:
        """The number of the next step."""
        return self.steps[-1].number + 1 if self.steps else 1

    def step(self, step: Step, draft: Draft) -> None:
        """Write one step with what it did to memory, in one transaction."""
        vectors = self._vectors(draft)
        try:
            kept = write_step(self.services.database, claim=self.claim, step=step, draft=draft, vectors=vectors)
        except UnreachableError as error:
            error.memory = self.claim.memory  # the step may be there: a commit that nobody answered may be done
            raise
        if kept:
            self._embed(kept)
        self.status = INTERRUPTED
        self.steps.append(step)
        self.points |= {birth.point.uid: birth.point for birth in draft.births}
        for uid in draft.died:
            self.points[uid] = replace(self.points[uid], died=draft.number)
        self.services.listener.tell(
            Planned(step=step.number, judgement=step.judgement, subqueries=step.planned, notes=step.notes)
        )

    def _embed(self, uids: Sequence[str]) -> None:
        """Give a vector to entities that the memory keeps of a corpus that has them no more."""
        database, corpus = self.services.database, self.claim.corpus
        rows = missing_entity_vectors(database, corpus=corpus, uids=uids)
        texts = [entity_text(row["name"], row["description"]) for row in rows]
        put_entity_vectors(database, corpus=corpus, rows=rows, vectors=self.services.embed(texts, kind="document"))

    def answer(self, task: AnswerQuestion, *, step: int, notes: Sequence[str] = (), last: bool = True) -> Answer:
        """Return the model's answer, its citations checked, written with them; the claim is kept until the last."""
        reply = self.services.write(task)
        cited = cite(reply.text, task.chunks)
        return self._finish(cited, status="answered", step=step, notes=(*notes, *reply.notes), last=last)

    def nothing(self, text: str, *, step: int) -> Answer:
        """Return the answer that says that there is no evidence, written without a model call."""
        notes = (misfit(self.filters, corpus=self.claim.corpus),) if self.choice.documents == () else ()
        cited = Cited(text=text, citations=(), notes=())
        return self._finish(cited, status="no_evidence", step=step, notes=notes, last=True)

    def unanswered(self, *, step: int) -> Answer:
        """Return what there is instead of an answer where none is wanted; the memory can be asked on for it."""
        release_memory(self.services.database, claim=self.claim, status=UNANSWERED)
        answer = self._of(Cited(text="", citations=(), notes=()), status=UNANSWERED, step=step)
        self.services.listener.tell(Answered(answer=answer))
        return answer

    def _finish(self, cited: Cited, *, status: str, step: int, notes: Sequence[str], last: bool) -> Answer:
        answer = replace(
            self._of(cited, status=status, step=step),
            uid=f"{self.claim.memory}-answer-{step}-{secrets.token_hex(3)}",
            notes=(*notes, *cited.notes),
        )
        write_answer(self.services.database, claim=self.claim, answer=answer, status=status if last else RUNNING)
        self.services.listener.tell(Answered(answer=answer))
        return answer

    def _of(self, cited: Cited, *, status: str, step: int) -> Answer:
        return Answer(
            uid="",
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
            usage=self.meter.usage(),
            seconds=round(time.perf_counter() - self.began, 4),
        )

    def _vectors(self, draft: Draft) -> Mapping[str, Vectors]:
        texts = {birth.point.uid: birth.point.description for birth in draft.births}
        texts |= {entity.uid: entity_text(entity.name, entity.description) for entity in draft.provisionals.values()}
        texts |= {
            relation.uid: own_relation_text((relation.source_name, relation.target_name), relation.description)
            for relation in draft.relations.values()
        }
        if not texts:
            return {}
        return dict(zip(texts, self.services.embed(list(texts.values()), kind="document"), strict=True))


@contextmanager
def recording(
    services: Services, *, system: str, question: Question, settings: Mapping[str, object]
) -> Iterator[Recording]:
    """Yield a memory, new or one that goes on, held by this run until the block ends.

    A block that ends early leaves the whole steps that it wrote.
    """
    memory = question.memory or f"m{secrets.token_hex(8)}"
    claim = Claim(corpus=services.corpus, memory=memory, run=secrets.token_hex(8))
    with measuring() as meter:
        record = Recording(
            services=services,
            claim=claim,
            system=system,
            question=question.text,
            meter=meter,
            began=time.perf_counter(),
            filters=question.filters or {},
        )
        record.choose()  # before anything is written
        if question.memory:
            _claim(record, question)
        else:
            properties = {"system": system, "model": services.model.name, "question": question.text}
            texts = {"settings": to_json(settings), "filters": to_json(record.filters)}
            create_memory(services.database, claim=claim, properties={**properties, **texts})
        with _held(record):
            if question.memory:
                _resume(record)
            services.listener.tell(
                QuestionAccepted(question=question.text, corpus=services.corpus, memory=memory, steps=len(record.steps))
            )
            yield record


def _claim(record: Recording, question: Question) -> None:
    """Hold a memory that goes on; filters that are given take the place of its own."""
    given = None if question.filters is None else to_json(question.filters)
    found = claim_memory(
        record.services.database,
        claim=record.claim,
        question=question.text,
        filters=given,
        timeout=record.services.settings.claim_timeout,
    )
    record.status = found.status
    record.filters = found.filters


@contextmanager
def _held(record: Recording) -> Iterator[None]:
    """Keep the claim alive while the block runs, and give it back where the block fails."""
    services, claim = record.services, record.claim
    try:
        with renewing(lambda: renew_memory(services.database, claim=claim), every=services.settings.heartbeat):
            yield
    except BaseException as error:
        if record.steps and isinstance(error, HGMemError | KeyboardInterrupt) and not isinstance(error, UsageError):
            error.memory = claim.memory  # type: ignore[union-attr]
        if not isinstance(error, UnreachableError):  # no server: the claim runs out by itself
            status = INTERRUPTED if record.status == RUNNING else record.status
            with suppress(HGMemError):
                release_memory(services.database, claim=claim, status=status)
        raise


def _resume(record: Recording) -> None:
    """Take in what the memory holds, and what its filters leave."""
    record.choose()
    scope = {"corpus": record.claim.corpus, "memory": record.claim.memory}
    record.steps = memory_steps(record.services.database, **scope)
    stored = memory_points(record.services.database, **scope)
    record.points = {one.point.uid: one.point for one in stored}
    record.answered = {(row["question"], row["step"]) for row in memory_answers(record.services.database, **scope)}
