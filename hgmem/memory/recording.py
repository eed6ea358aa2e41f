"""Recording: what a system does with a question, written to Neo4j step by step under a lease, and its points."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hgmem.corpus.aggregation import ENTITY
from hgmem.corpus.guarded_writes import renewing
from hgmem.errors import HGMemError, UnreachableError, UsageError
from hgmem.extraction.contributions import entity_text, own_relation_text
from hgmem.graph.memory import (
    Lease,
    check_writes,
    create_memory,
    lease_memory,
    memory_answers,
    memory_points,
    memory_steps,
    release_memory,
    renew_memory,
    write_answer,
    write_step,
)
from hgmem.graph.retrieval import Scope, classes_of_chunks
from hgmem.graph.values import to_json
from hgmem.models.embedding import Vectors
from hgmem.models.metering import Meter, measuring
from hgmem.retrieval.answer import AnswerQuestion, AnswerReply, Cited, cite
from hgmem.retrieval.document_filters import Choice, choose, misfit
from hgmem.retrieval.rendering import PromptMemory, same_names
from hgmem.services import Services
from hgmem.text.language import no_evidence
from hgmem.values.events import Answered, AnswerToken, EvidenceFound, Planned, QuestionAccepted
from hgmem.values.evidence import Citable, Evidence, Retrieved
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import INTERRUPTED, RUNNING, UNANSWERED, Answer, MemoryPoint, Step, StepChanges

_STRATEGY = re.compile(r"[a-z][a-z ]{0,29}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoints:
    """Every point of a memory by uid, in order of birth, and the points (uids) that each was made from."""

    by_uid: Mapping[str, MemoryPoint] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, points: Iterable[MemoryPoint], steps: Iterable[Step]) -> "MemoryPoints":
        """Return stored points, in order of birth, with the lineages that the operations of steps tell."""
        made = [operation for step in steps for operation in step.operations if operation.point]
        parts = {operation.point: operation.parts for operation in made if operation.parts}
        return cls(by_uid={point.uid: point for point in points}, parts=parts)

    @property
    def active(self) -> tuple[MemoryPoint, ...]:
        """The points that no later one has superseded, in order of birth."""
        return tuple(point for point in self.by_uid.values() if point.died is None)

    def at(self, step: int) -> tuple[MemoryPoint, ...]:
        """Return the points that are active at the end of `step`, in order of birth."""
        return tuple(point for point in self.by_uid.values() if point.alive(step))

    def after(self, changes: StepChanges, *, step: int) -> "MemoryPoints":
        """Return the points as `write_step` (cypher/memory.cypher) leaves the stored ones after these changes."""
        born = {birth.point.uid: birth.point for birth in changes.births}
        parts = {birth.point.uid: (*birth.revises, *birth.merges) for birth in changes.births}
        by_uid = {**self.by_uid, **born}
        died = {uid: replace(by_uid[uid], died=step, retired=changes.retired.get(uid, "")) for uid in changes.died}
        return MemoryPoints(by_uid=by_uid | died, parts={**self.parts, **parts})

    def findings(self, points: Sequence[MemoryPoint]) -> list[dict[str, tuple[str, ...]]]:
        """Return the findings that each point stands for, in order of birth: the chunks (uids) of each by its uid.

        A finding is a point that was inserted, or a revision, with the chunks that it brought. Those without any are
        left out. A point without known parts is a finding itself.
        """
        place = {uid: at for at, uid in enumerate(self.by_uid)}
        found = []
        for point in points:
            before = sorted(behind(self.parts, point.uid) & place.keys(), key=lambda uid: place[uid])
            brought = {each.uid: self._brought(each) for each in (*(self.by_uid[uid] for uid in before), point)}
            found.append({uid: chunks for uid, chunks in brought.items() if chunks})
        return found

    def _brought(self, point: MemoryPoint) -> tuple[str, ...]:
        """Return the chunks of a point that none of its parts has."""
        parts = (self.by_uid[uid] for uid in self.parts.get(point.uid, ()) if uid in self.by_uid)
        inherited = {chunk for part in parts for chunk in part.chunks}
        return tuple(chunk for chunk in point.chunks if chunk not in inherited)


def behind(parts: Mapping[str, Sequence[str]], point: str) -> set[str]:
    """Return the points (uids) that were revised or merged into this one, directly or not, by the parts of each."""
    found: set[str] = set()
    left = list(parts.get(point, ()))
    while left:
        uid = left.pop()
        if uid not in found:
            found.add(uid)
            left += parts.get(uid, ())
    return found


@dataclass(slots=True, kw_only=True)
class Recording:
    """One question's memory while it is being written: whole steps, then an answer.

    `steps` and `points` hold what the memory had before as well, where it goes on.
    """

    services: Services
    lease: Lease
    system: str
    question: str
    meter: Meter
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_step: int | None = None  # the step that is answered from, by default the last
    notes: Sequence[str] = ()  # said with every answer
    theme: bool = True  # whether the question says what to look for
    choice: Choice = field(default_factory=Choice)  # the documents that the filters leave
    status: str = RUNNING  # that the memory falls back to where nothing is written
    steps: list[Step] = field(default_factory=list)
    points: MemoryPoints = field(default_factory=MemoryPoints)  # replaced once a step is written
    answered: set[tuple[str, int]] = field(default_factory=set)  # questions answered before, and at which step

    @property
    def scope(self) -> Scope:
        """Where this question looks."""
        return Scope(corpus=self.lease.corpus, memory=self.lease.memory, documents=self.choice.documents)

    @property
    def next_number(self) -> int:
        """The number of the next step."""
        return self.steps[-1].number + 1 if self.steps else 1

    def new_step(self, strategy: str, retrieved: tuple[Retrieved, ...], meter: Meter, **more: Any) -> Step:
        """Return the next step, not written yet, with what its meter counted and its other fields."""
        return Step(
            number=self.next_number,
            question=self.question,
            strategy=strategy,
            filters=self.filters,
            retrieved=retrieved,
            seconds=meter.elapsed(),
            usage=meter.usage(),
            **more,
        )

    def write_step(self, step: Step, changes: StepChanges | None = None) -> None:
        """Write one step with what it did to memory and with its system's own rows, in one transaction.

        Raises `UsageError` if a strategy is not a word or a few (lowercase letters and spaces, at most 30), and for a
        statement that cannot be part of a step.
        """
        for strategy in (step.strategy, *(found.subquery.strategy for found in step.retrieved)):
            if not _STRATEGY.fullmatch(strategy):
                raise UsageError(
                    f"system {self.system!r} gave strategy {strategy!r}: use at most 30 lowercase letters and spaces"
                )
        changes = changes or StepChanges()
        check_writes(changes.writes, system=self.system)
        vectors = self._vectors(changes)
        try:
            written = write_step(self.services.database, lease=self.lease, step=step, changes=changes, vectors=vectors)
        except UnreachableError as error:
            error.memory = self.lease.memory  # the step may be there: a commit that nobody answered may be done
            raise
        if written.kept:  # entities that the memory keeps of a corpus that has them no more
            ENTITY.filling.fill(self.services, self.services.database, written.kept)
        self.status = INTERRUPTED
        self.steps.append(replace(step, created_at=written.created_at))
        self.points = self.points.after(changes, step=step.number)
        self.services.listener.emit(
            Planned(step=step.number, judgement=step.judgement, subqueries=step.planned, notes=step.notes)
        )

    def tell_evidence(self, evidence: Evidence, *, step: int) -> None:
        """Emit what a step found."""
        found = EvidenceFound(
            step=step,
            strategy=evidence.strategy,
            entities=len(evidence.entities),
            relations=len(evidence.relations),
            chunks=len(evidence.chunks),
            names=tuple(entity.name for entity in evidence.entities),
            built=tuple(hit for one in evidence.retrieved for hit in one.built),
        )
        self.services.listener.emit(found)

    def answer(
        self,
        memory: PromptMemory,
        passages: Sequence[Citable],
        *,
        form: str,
        notes: Sequence[str] = (),
        last: bool = True,
    ) -> Answer:
        """Ask for an answer, write it with its citations and return it. The last one gives the lease back.

        Where passages name an entity otherwise than the question or memory, the prompt says so.
        """
        task = self._asking(memory, passages, form=form)
        return self._cited(task, self.services.write(task), notes=notes, last=last)

    def answer_if_enough(
        self, memory: PromptMemory, passages: Sequence[Citable], *, form: str, enough: Callable[[], None]
    ) -> Answer | str:
        """Ask for an answer that may instead say what is missing, and return which it was.

        An answer is written as the last one, after `enough` was called.
        """
        task = replace(self._asking(memory, passages, form=form), tentative=True)
        reply = self.services.reply(task)
        if reply.missing is not None:
            return reply.missing
        self.services.listener.emit(AnswerToken(text=reply.text))
        enough()
        return self._cited(task, reply)

    def _asking(self, memory: PromptMemory, passages: Sequence[Citable], *, form: str) -> AnswerQuestion:
        chunks = [one.uid for one in passages if isinstance(one, Chunk)]
        classes = classes_of_chunks(self.services.database, corpus=self.lease.corpus, uids=chunks)
        known, read = (self.question, *memory.texts), (one.text for one in passages)
        return AnswerQuestion(
            question=self.question,
            memory=replace(memory, same=same_names(classes, known=known, read=read)),
            passages=tuple(passages),
            form=form,
            language=self.services.language,
            theme=self.theme,
        )

    def _cited(
        self, task: AnswerQuestion, reply: AnswerReply, *, notes: Sequence[str] = (), last: bool = True
    ) -> Answer:
        cited = cite(reply.text, task.passages)
        cited = replace(cited, notes=(*reply.notes, *cited.notes))
        return self._finish(cited, status="answered", notes=notes, last=last)

    def no_evidence(self, *, notes: Sequence[str] = ()) -> Answer:
        """Return the answer that says that there is no evidence, written without a model call."""
        misfits = (misfit(self.filters, corpus=self.lease.corpus),) if self.choice.documents == () else ()
        cited = Cited(text=no_evidence(self.question))
        return self._finish(cited, status="no_evidence", notes=(*misfits, *notes))

    def unanswered(self) -> Answer:
        """Return an answer without text where none was requested. The memory can be continued for it."""
        return self._finish(Cited(text=""), status=UNANSWERED)

    def _finish(self, cited: Cited, *, status: str, notes: Sequence[str] = (), last: bool = True) -> Answer:
        step = self.next_number - 1 if self.at_step is None else self.at_step
        answer = Answer(
            uid="",
            question=self.question,
            text=cited.text,
            status=status,
            corpus=self.lease.corpus,
            system=self.system,
            memory=self.lease.memory,
            model=self.services.model.name,
            step=step,
            citations=cited.citations,
            points=tuple(self.points.by_uid.values()),
            steps=tuple(self.steps),
            usage=self.meter.usage(),
            seconds=self.meter.elapsed(),
        )
        if status == UNANSWERED:
            release_memory(self.services.database, lease=self.lease, status=status)
        else:
            uid = f"{self.lease.memory}-answer-{step}-{secrets.token_hex(3)}"
            answer = replace(answer, uid=uid, notes=(*self.notes, *notes, *cited.notes))
            write_answer(self.services.database, lease=self.lease, answer=answer, status=status if last else RUNNING)
        self.services.listener.emit(Answered(answer=answer))
        return answer

    def _vectors(self, changes: StepChanges) -> Mapping[str, Vectors]:
        texts = {birth.point.uid: birth.point.description for birth in changes.births}
        texts |= {entity.uid: entity_text(entity.name, entity.description) for entity in changes.entities}
        texts |= {
            relation.uid: own_relation_text((relation.source_name, relation.target_name), relation.description)
            for relation in changes.relations
        }
        if not texts:
            return {}
        return dict(zip(texts, self.services.embed(list(texts.values()), kind="document"), strict=True))


def new_uid() -> str:
    """Return a uid for a new memory."""
    return f"m{secrets.token_hex(8)}"


@contextmanager
def recording(
    services: Services, *, system: str, question: Question, settings: Mapping[str, object]
) -> Iterator[Recording]:
    """Yield a memory, new or one that goes on, held by this run until the block ends.

    A block that ends early leaves the whole steps that it wrote.
    """
    memory = question.memory or services.repeatable.memory or new_uid()
    lease = Lease(corpus=services.corpus, memory=memory, run=secrets.token_hex(8))
    before = 0  # answers
    with measuring() as meter:
        record = Recording(
            services=services,
            lease=lease,
            system=system,
            question=question.text,
            meter=meter,
            filters=question.filters or {},
            at_step=question.at_step,
            notes=question.notes,
            theme=question.theme,
        )
        # before anything is written
        record.choice = choose(services.database, record.filters, corpus=lease.corpus, required=True)
        services.listener.check()  # who has left leaves no memory without steps
        if question.memory:
            timeout, owner = services.settings.claim_timeout, services.owner
            found = lease_memory(services.database, lease=lease, question=question, timeout=timeout, owner=owner)
            record.status, record.filters = found.status, found.filters  # those given replace its own
        else:
            properties = {"system": system, "model": services.model.name, "question": question.text}
            texts = {"settings": to_json(settings), "filters": to_json(record.filters), "owner": services.owner or ""}
            create_memory(services.database, lease=lease, properties={**properties, **texts})
        with _leased(record):
            if question.memory:
                before = _resume(record)
            accepted = QuestionAccepted(
                question=question.text,
                corpus=services.corpus,
                memory=memory,
                steps=len(record.steps),
                answers=before,
            )
            services.listener.emit(accepted)
            yield record


@contextmanager
def _leased(record: Recording) -> Iterator[None]:
    services, lease = record.services, record.lease
    try:
        with renewing(services.database, lambda at: renew_memory(at, lease=lease), every=services.settings.heartbeat):
            yield
    except BaseException as error:
        if record.steps and isinstance(error, HGMemError | KeyboardInterrupt) and not isinstance(error, UsageError):
            error.memory = lease.memory  # type: ignore[union-attr]
        if not isinstance(error, UnreachableError):  # no server: the lease expires by itself
            status = INTERRUPTED if record.status == RUNNING else record.status
            with suppress(HGMemError):
                release_memory(services.database, lease=lease, status=status)
        raise


def _resume(record: Recording) -> int:
    """Read what the memory has, and return how many answers."""
    database, owner = record.services.database, record.services.owner
    scope = {"corpus": record.lease.corpus, "memory": record.lease.memory}
    record.choice = choose(database, record.filters, corpus=record.lease.corpus)
    record.steps = memory_steps(database, **scope, owner=owner)
    stored = memory_points(database, **scope, owner=owner)
    record.points = MemoryPoints.of((found.point for found in stored), record.steps)
    answers = memory_answers(database, **scope, owner=owner)
    record.answered = {(row["question"], row["step"]) for row in answers}
    return len(answers)
