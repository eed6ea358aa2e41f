"""What happens while a question is answered, as it happens: the events of `HGMem.stream`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hgmem.model import Answer, Judgement, Operation, Strategy, Subquery, Task

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAccepted:
    """The question has a memory (uid) in Neo4j; `steps` are those that it had before, in a memory continued."""

    question: str
    corpus: str
    memory: str
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins; it asks these sub-queries."""

    step: int
    subqueries: tuple[Subquery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """What the sub-queries of a step found together; `names` are those of the entities, nearest first."""

    step: int
    strategy: Strategy
    entities: int
    relations: int
    chunks: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationApplied:
    """Memory changed, or a part of a reply was dropped; `description` is what the point says now.

    It is told as soon as the reply is there; the step is in Neo4j with its `Planned`.
    """

    step: int
    operation: Operation
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a step leads to; it is in Neo4j by now. No `judgement` on the last step, which plans nothing."""

    step: int
    judgement: Judgement | None
    subqueries: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerToken:
    """A piece of the answer as the model writes it: its markers are checked and renumbered afterwards."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer, its citations checked; the last event, but where every step is answered.

    Where none was wanted, its status is `unanswered`.
    """

    answer: Answer


Event: TypeAlias = QuestionAccepted | StepStarted | EvidenceFound | OperationApplied | Planned | AnswerToken | Answered


def _silent(_: Event) -> None:
    return None


def _going_on() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears of events. `check` is called before each call of a model; what it raises ends the question."""

    tell: Callable[[Event], None] = _silent
    check: Callable[[], None] = field(default=_going_on)

    @property
    def hears(self) -> bool:
        """Whether anybody listens."""
        return self.tell is not _silent


class Watcher:
    """Who is there while a question is worked on, in the thread that works on it; this one does nothing of its own.

    Made for tracing: `question` and `call` are around the work and return what it returns.
    """

    def question(self, work: Callable[[], Done], /) -> Done:
        """Do the work of a whole question."""
        return work()

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Do the work of one call of a model: its reply, or its text where that comes piece by piece."""
        return work()

    def hear(self, event: Event, /) -> None:
        """Hear of an event, before whoever reads the stream."""
