"""The record of a question: memory points, operations, steps, answers with their citations.

Units and order: times are UTC in ISO 8601, durations seconds. `start` and `end` are code points of the document's text,
half-open. Higher scores are closer, lists of hits are nearest first. Steps are numbered from 1 (the paper's t is number
− 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.values.evidence import Retrieved, Strategy, Subquery, Write
from hgmem.values.graph_elements import Chunk, Entity, Relation
from hgmem.values.inputs import Scalar
from hgmem.values.usage import Usage

Judgement: TypeAlias = Literal["sufficient", "local", "global"]
OperationKind: TypeAlias = Literal["insert", "revise", "merge", "retire", "drop"]
QuoteStatus: TypeAlias = Literal["in_document", "not_in_document", "document_deleted"]
RUNNING, INTERRUPTED, UNANSWERED = "running", "interrupted", "unanswered"  # unanswered: no answer was requested
PRUNING, PRUNED = "pruning", "pruned"  # being deleted, and reduced to their answers


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """A hyperedge: one statement that involves several entities and is supported by chunks (uids).

    It is active at the end of step t iff `born <= t and (died is None or died > t)`. `died` is the step that superseded
    it, or that retired it for the reason `retired`. If it is `inferred`, no chunk says it: it follows from several.
    """

    uid: str
    description: str
    entities: tuple[Entity, ...]
    chunks: tuple[str, ...] = ()
    inferred: bool = False
    born: int = 1
    died: int | None = None
    retired: str = ""
    deleted_chunks: tuple[str, ...] = ()

    @property
    def unsupported(self) -> bool:
        """Whether the point had supporting chunks and all of them were deleted."""
        return bool(self.deleted_chunks) and not self.chunks

    def alive(self, step: int) -> bool:
        """Whether the point is active at the end of `step`."""
        return self.born <= step and (self.died is None or self.died > step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A change of memory: `parts` became `point`, were retired for a `reason`, or a change that was dropped for one."""

    kind: OperationKind
    point: str = ""
    parts: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """A point that a step created, and the points (uids) that it revises or merges."""

    point: MemoryPoint
    revises: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChanges:
    """The changes of a step: new points, points (uids) that died, and provisional entities and relations.

    `retired` has the reasons of those that no other point supersedes.

    `writes` are statements of the system's own. They run after the step in its transaction, in this order.
    """

    births: tuple[Birth, ...] = ()
    died: tuple[str, ...] = ()
    retired: Mapping[str, str] = field(default_factory=dict)
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """A point and its origin. `kind` tells how it was created, `parts` are the lineages of the points it supersedes.

    `into` are the points (uids) that were made of it. `copied_from` is the point (uid) of another memory that a fork
    has it from.
    """

    point: MemoryPoint
    kind: OperationKind
    parts: tuple["Lineage", ...] = ()
    into: tuple[str, ...] = ()
    copied_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One round of a question: strategy, evidence, operations and the plan's `judgement`.

    `premise` is what the documents contradict of what the question takes for granted, and `open` what is still missing.
    `planned` are the plan's sub-queries, which the next step asks, if there is one. `filters` selected the searched
    documents: all names must match, with any one text each. `created_at` is when the step was written.
    """

    number: int
    question: str
    strategy: Strategy
    judgement: Judgement | None = None
    premise: str = ""
    open: tuple[str, ...] = ()
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retrieved: tuple[Retrieved, ...] = ()
    operations: tuple[Operation, ...] = ()
    planned: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A checked quote. Marker n is `[n]` in the answer, and `document.text[start:end] == quote`.

    A quote from a row of a system's build has the row's uid as `built` and no `chunk`. `behind` are then the chunks
    (uids) that the row rests on and that are nearest to the question.

    A quote from a conversation names the `message` (id), its `speaker`, and its `time` in ISO 8601 if that is known.

    It is `withdrawn` once its chunk or row is deleted or changed. When a memory is read back, `quote_status` then says
    whether the document of a chunk still contains the quote, apart from whitespace.
    """

    marker: int
    chunk: str
    document: str
    title: str
    quote: str
    start: int | None = None
    end: int | None = None
    source_id: str = ""
    built: str = ""
    behind: tuple[str, ...] = ()
    message: str = ""
    speaker: str = ""
    time: str = ""
    withdrawn: bool = False
    quote_status: QuoteStatus | None = None

    @property
    def attribution(self) -> str:
        """Who said it when, such as `Ann, 2023-02-04 19:12 (m12)`, or an empty text."""
        if not self.message:
            return ""
        when = f", {self.time[:16].replace('T', ' ')}" if self.time else ""
        return f"{self.speaker}{when} ({self.message})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question, with the memory it was drawn from.

    `points` holds every point of the memory, superseded ones included. `status` is `answered`, `no_evidence`, or
    `unanswered` if no answer was requested. An unanswered one has no uid and no text.
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
class CitedText:
    """A text with its citations that a verb of a system gives, such as a summary.

    `memory` is the uid of its record, if it has one. `notes` say what it could not use.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    memory: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary:
    """A line in the list of memories. `status`, `owner` and `forked_from` are those of `Memory`.

    `question` is its first, or the latest of a fork. `withdrawn` counts the citations of its answers whose text was
    deleted or changed.
    """

    uid: str
    corpus: str
    system: str
    model: str
    status: str
    question: str
    steps: int
    points: int
    created_at: str
    owner: str = ""
    withdrawn: int = 0
    forked_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A question's hypergraph at the end of `step`, with the `points` then active.

    `docs/concepts.md` lists the values of `status`. `owner` is empty for a memory that everybody sees. A fork names the
    memory (uid) that it was `forked_from`, as that was at the end of step `forked_at`, also where it is gone.
    """

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
    owner: str = ""
    forked_from: str = ""
    forked_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk that an answer may be drawn from. `rank` counts from 1, the best.

    `score` is the best one among the retrievals by the question's steps (as in `Hit`), or None. `step` is the first
    step that retrieved the chunk or created an active point supported by it, or None if it is only linked to entities
    of memory. `points` are the active points that it supports, `source` and `metadata` those of its document.
    """

    chunk: Chunk
    rank: int
    score: float | None = None
    step: int | None = None
    points: tuple[MemoryPoint, ...] = ()
    source: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
