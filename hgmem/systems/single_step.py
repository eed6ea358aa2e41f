"""A whole system made of one function that finds evidence: retrieve once, record one step, answer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from pydantic import ConfigDict

from hgmem.errors import UsageError
from hgmem.graph.retrieval import Scope
from hgmem.memory.recording import recording
from hgmem.memory.stored_memories import Stored
from hgmem.models.metering import measuring
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import PromptMemory
from hgmem.retrieval.step_evidence import Positive, Reranked
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.answering import recorded_chunks, scope_of
from hgmem.systems.costs import around, passages
from hgmem.systems.spec import Answering, Config, SystemSpec, loaded
from hgmem.values.events import StepStarted
from hgmem.values.evidence import GLOBAL, BuiltHit, BuiltPassage, Evidence, Hit, Retrieved, Strategy, Subquery, Write
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory, StepChanges

Read = TypeVar("Read", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunksConfig:
    """The config of a system that answers from `chunks` chunks, the best of `rerank` to a reranker if that is not 0."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    chunks: Positive = 10
    rerank: Reranked = 0

    @property
    def searched(self) -> int:
        """How many chunks are searched for."""
        return max(self.chunks, self.rerank)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsConfig(ChunksConfig):
    """The config of a system that searches words."""

    titles: bool = True  # words of a document's title count in each of its chunks


def _is_ours(value: object, method: object) -> bool:
    """Whether a field is empty, or holds the method of the system that this one was copied from."""
    return value is None or getattr(value, "__func__", None) is method


class Retrieve(Protocol[Read]):
    """How a system finds evidence."""

    def __call__(self, services: Services, question: str, *, scope: Scope, config: Read) -> Evidence:
        """Return the evidence for a question within a scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleStep(SystemSpec[Config]):
    """A system that answers from what `retrieve` finds, to export as `SPEC`. Its memories have one step and no points.

    `form_option` names the option of `config` that says how the answer is to look, if there is one. `answer` is made
    here. With a `passage_option`, `passages` is too, and `cost`, one call of an answer: a system that asks a model for
    more gives its own.
    The option `steps`, which callers may pass to any system, has no effect.
    """

    retrieve: Retrieve[Config]
    form_option: str = ""
    answer: Answering[Config] = field(init=False)

    def __post_init__(self) -> None:
        if self.continues or self.steps_option or self.learn_option:
            raise UsageError(f"system {self.name!r} has one step: it cannot continue memories, take steps or learn")
        object.__setattr__(self, "answer", self._answer)
        if self.passage_option and _is_ours(self.passages, SingleStep._passages):
            object.__setattr__(self, "passages", self._passages)
        if self.passage_option and not self.prompts and _is_ours(self.cost, SingleStep._cost):
            object.__setattr__(self, "cost", self._cost)

    def _cost(self, config: Config, *, settings: Settings) -> tuple[int, int]:
        """Return the one call of the answer, and how many tokens its prompt has at most."""
        chunks = int(getattr(config, self.passage_option))
        return 1, around(AnswerQuestion) + passages(chunks, settings=settings)

    def _answer(self, services: Services, question: Question, config: Config, *, stored: Stored | None) -> Answer:
        settings: dict[str, Any] = asdict(config)  # type: ignore[call-overload]
        with recording(services, system=self.name, question=question, settings=settings) as record:
            services.listener.emit(StepStarted(step=1, subqueries=(Subquery(text=question.text),)))
            with measuring() as meter:
                evidence = self.retrieve(services, question.text, scope=record.scope, config=config)
            step = record.new_step(evidence.strategy, evidence.retrieved, meter, notes=evidence.notes)
            record.tell_evidence(evidence, step=1)
            record.write_step(step, StepChanges(writes=evidence.writes))
            if evidence.empty:
                return record.no_evidence(notes=evidence.remarks)
            if not question.answer:
                return record.unanswered()
            form = getattr(config, self.form_option) if self.form_option else ""
            memory = PromptMemory(statements=evidence.statements, ended=evidence.ended)
            return record.answer(memory, evidence.passages, form=form, notes=evidence.remarks)

    def _passages(
        self, services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None
    ) -> Sequence[Chunk]:
        """Return the chunks that were retrieved, the best first, and further ones if there are fewer than `limit`."""
        read = recorded_chunks(services, memory, limit=limit)
        if limit is None or len(read) >= limit:
            return read
        config = loaded(self.config, {**settings, self.passage_option: limit})
        scope, question = scope_of(services, memory), memory.steps[-1].question
        more = self.retrieve(services, question, scope=scope, config=config)
        held = {chunk.uid for chunk in read}
        return [*read, *(chunk for chunk in more.chunks if chunk.uid not in held)][:limit]


class EvidenceParts(TypedDict, total=False):
    """What a system found beside chunks, and how.

    `strategy` says in a word or a few how it searched, `built` which rows of the system's build led to the chunks.
    `cited` are rows that the answer may cite beside the chunks, `writes` statements to run in the step's transaction.
    """

    strategy: Strategy
    built: Sequence[BuiltHit]
    cited: Sequence[BuiltPassage]
    writes: Sequence[Write]


def evidence_of(question: str, found: Sequence[tuple[Chunk, float]], **more: Unpack[EvidenceParts]) -> Evidence:
    """Return chunks with their scores, the best first, as the evidence of a question."""
    hits = tuple(
        Hit(uid=chunk.uid, rank=rank, score=score, source_id=chunk.source_id)
        for rank, (chunk, score) in enumerate(found, start=1)
    )
    subquery = Subquery(text=question, strategy=more.get("strategy", GLOBAL))
    retrieved = Retrieved(subquery=subquery, chunks=hits, built=tuple(more.get("built", ())))
    return Evidence(
        retrieved=(retrieved,),
        chunks=tuple(chunk for chunk, _ in found),
        built=tuple(more.get("cited", ())),
        writes=tuple(more.get("writes", ())),
    )
