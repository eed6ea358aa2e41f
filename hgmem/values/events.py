"""The events of `HGMem.stream`, and hooks for tracing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hgmem.values.evidence import BuiltHit, Strategy, Subquery
from hgmem.values.records import Answer, Judgement, Operation
from hgmem.values.task import Task

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAccepted:
    """The question has a memory (uid) in Neo4j. `steps` and `answers` count the earlier ones of a continued memory."""

    question: str
    corpus: str
    memory: str
    steps: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins with these sub-queries."""

    step: int
    subqueries: tuple[Subquery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """A step's sub-queries retrieved evidence. `names` are the entities' names, nearest first.

    `built` are rows of the system's build, with the texts of this time.
    """

    step: int
    strategy: Strategy
    entities: int
    relations: int
    chunks: int
    names: tuple[str, ...] = ()
    built: tuple[BuiltHit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationApplied:
    """Memory changed, or part of a reply was dropped. `description` is the point's current text.

    It is emitted as soon as the reply arrives. The step is stored in Neo4j before its `Planned`.
    """

    step: int
    operation: Operation
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A step ends and is stored in Neo4j. The last step plans nothing, so its `judgement` is None.

    `subqueries` are those of the next step.
    """

    step: int
    judgement: Judgement | None
    subqueries: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerToken:
    """A piece of the answer while the model writes it. Its markers are not yet checked and renumbered."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer with checked citations. It is the last event, unless every step is answered.

    Without a requested answer, its status is `unanswered`.
    """

    answer: Answer


Event: TypeAlias = QuestionAccepted | StepStarted | EvidenceFound | OperationApplied | Planned | AnswerToken | Answered


def _ignore(*_: Event) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Callbacks for events. `check` is called before each model call and raises to end the question."""

    emit: Callable[[Event], None] = _ignore
    check: Callable[[], None] = field(default=_ignore)

    @property
    def is_listening(self) -> bool:
        """Whether events have a receiver."""
        return self.emit is not _ignore


class Watcher:
    """Base class for tracing hooks, called in the thread that does the work. It does nothing.

    All but `hear` wrap the work and return its result. `ask(watcher=…)` watches one question, `hg.watcher = …` all that
    a client does.
    """

    def question(self, work: Callable[[], Done], /) -> Done:
        """Run the work of a whole question."""
        return work()

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Run one model call. Its result is the reply, or the text of a streamed reply."""
        return work()

    def hear(self, event: Event, /) -> None:
        """Receive an event, before the reader of the stream does."""

    def work(self, name: str, work: Callable[[], Done], /) -> Done:
        """Run a `search`, an `index`, `append` or `retry`, or a `build`. Its result is what the client returns."""
        return work()

    def job(self, kind: str, work: Callable[[], str], /) -> str:
        """Run a job of the service. Its result is the state that it ends in."""
        return work()


class Both(Watcher):
    """The hooks of one question that has two watchers, of which one is around the other."""

    def __init__(self, outer: Watcher, inner: Watcher) -> None:
        self._outer, self._inner = outer, inner

    def question(self, work: Callable[[], Done], /) -> Done:
        """Run the work of a whole question inside both."""
        return self._outer.question(lambda: self._inner.question(work))

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Run one model call inside both."""
        return self._outer.call(task, lambda: self._inner.call(task, work))

    def hear(self, event: Event, /) -> None:
        """Tell both of an event."""
        self._outer.hear(event)
        self._inner.hear(event)
