"""The values that travel through hgmem: frozen, without I/O, the same words as in Cypher.

Units and order, everywhere: times are UTC and ISO 8601, durations seconds; `start` and `end` are code points
of the document's text, half-open; scores are higher-is-closer; lists of hits are nearest first; steps are
numbered from 1 (the paper's t is number − 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

from hgmem.usage import Usage

Strategy: TypeAlias = Literal["global", "local"]
Judgement: TypeAlias = Literal["sufficient", "local", "global"]
OperationKind: TypeAlias = Literal["insert", "revise", "merge", "drop"]
RUNNING, INTERRUPTED, UNANSWERED = "running", "interrupted", "unanswered"  # the last: no answer was wanted
PRUNING, PRUNED = "pruning", "pruned"  # memories on their way out, and those of which the answers alone are kept

Reply_co = TypeVar("Reply_co", covariant=True)


class Task(Protocol[Reply_co]):
    """One question to a language model: a frozen dataclass of typed fields that names its reply type."""

    @property
    def name(self) -> str:
        """The task's name in usage and notes, and of its prompt: `prompts/<name>.md`."""

    @property
    def reply_type(self) -> type[Reply_co]:
        """The pydantic model that every reply is validated as."""

    def fields(self) -> Mapping[str, str]:
        """Return what the placeholders of the prompt stand for."""


# The corpus ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document: `document.text[start:end] == text`, where the offsets are known."""

    uid: str
    document: str
    position: int
    text: str
    tokens: int
    start: int | None = None
    end: int | None = None
    title: str = ""
    source_id: str = ""
    entities: tuple["Entity", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A vertex. `provisional` ones were named by the model and belong to one memory alone."""

    uid: str
    name: str
    type: str = ""
    description: str = ""
    provisional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """An undirected edge between two entities, named by their uids and their names."""

    uid: str
    source: str
    target: str
    source_name: str
    target_name: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStatus:
    """What a corpus holds. `failed` counts chunks whose extraction failed, `pending` those not yet done."""

    corpus: str
    status: str
    documents: int
    chunks: int
    entities: int
    relations: int
    memories: int
    failed: int
    pending: int
    embedding_model: str
    dimensions: int
    failures: tuple[Mapping[str, str], ...] = ()


# Retrieval ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery:
    """What one concern asks for; `targets` are the uids of the points that a local one digs into."""

    text: str
    concern: str = ""
    strategy: Strategy = "global"
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One retrieved thing: its uid, rank from 1 and score (cosine in [-1, 1]).

    `name` is there for entities, `source_id` for chunks: the id that they were imported under.
    """

    uid: str
    rank: int
    score: float = 0.0
    name: str = ""
    source_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What one sub-query found, nearest first."""

    subquery: Subquery
    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    chunks: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a step's sub-queries found together, each thing once; chunks in order of document and position."""

    retrieved: tuple[Retrieved, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()


# Memory -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """A hyperedge: one statement over several entities, supported by chunks (uids).

    Alive at the end of step t iff `born <= t and (died is None or died > t)`.
    """

    uid: str
    description: str
    entities: tuple[Entity, ...]
    chunks: tuple[str, ...] = ()
    born: int = 1
    died: int | None = None

    def alive(self, step: int) -> bool:
        """Whether the point is alive at the end of `step`."""
        return self.born <= step and (self.died is None or self.died > step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What happened to memory, in order: `parts` became `point`; a drop names its `reason`."""

    kind: OperationKind
    point: str = ""
    parts: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """A point and what it came from: `kind` is how it was born, `parts` the lineages of the points that died."""

    point: MemoryPoint
    kind: OperationKind
    parts: tuple["Lineage", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One round: how it retrieved (`strategy`), what it found, what it did, what its plan said (`judgement`).

    `planned` are the sub-queries that its plan led to: those of the next step, if there was one. `filters` are what
    chose the documents that it searched: any of the texts, for every name.
    """

    number: int
    question: str
    strategy: Strategy
    judgement: Judgement | None = None
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retrieved: tuple[Retrieved, ...] = ()
    operations: tuple[Operation, ...] = ()
    planned: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A checked quote: `marker` n is `[n]` in the answer, and `document.text[start:end] == quote`."""

    marker: int
    chunk: str
    document: str
    title: str
    quote: str
    start: int | None = None
    end: int | None = None
    source_id: str = ""
    withdrawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a question, with the memory it was drawn from.

    `points` holds every point of the memory, dead ones too; `status` is `answered`, `no_evidence`, or
    `unanswered` where none was wanted: then it has no uid and no text.
    """

    uid: str
    question: str
    text: str
    status: str
    corpus: str
    system: str
    memory: str
    model: str
    step: int
    citations: tuple[Citation, ...] = ()
    points: tuple[MemoryPoint, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary:
    """One line of the list of memories; `status` as in `Memory`."""

    uid: str
    corpus: str
    system: str
    model: str
    status: str
    question: str
    steps: int
    points: int
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What an archive holds, records by kind; `notes` say what is not in it, `written` whether anything was."""

    corpus: str
    written: bool
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A question's hypergraph at the end of step `step`, its living `points` then; `status` as in docs/concepts.md."""

    uid: str
    corpus: str
    system: str
    model: str
    status: str
    created_at: str
    step: int
    points: tuple[MemoryPoint, ...] = ()
    steps: tuple[Step, ...] = ()
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The memories (uids) that went, or of which the answers alone are kept; a dry run names those that would."""

    corpus: str
    memories: tuple[str, ...]
    kept_answers: bool = False
    dry_run: bool = False
