"""Records of memories: what was asked, what each step did, what was remembered, and the answers."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from hgmem.corpus.archive.fields import Boolean, Integer, MemoryUid, Number, OwnUid, Text, Texts, Time, Uid, Vector
from hgmem.corpus.archive.nested import Built, Filters, Object, Operations, Planned, Usage
from hgmem.corpus.archive.schema import MemoryRecord, Reference, one_of, to, to_entity


class Memory(MemoryRecord):
    """A memory."""

    kind: Literal["Memory"]
    uid: MemoryUid
    owner: Text | None = None
    system: Text
    model: Text
    question: Text
    latest: Text | None = None
    settings: Object
    filters: Filters | None = None
    status: Text
    created_at: Time

    identity: ClassVar[tuple[str, ...]] = ("uid",)


class Provisional(MemoryRecord):
    """An entity that a model named and the corpus lacks."""

    kind: Literal["Provisional"]
    uid: OwnUid
    memory: MemoryUid
    name: Text
    type: Text | None = None
    description: Text | None = None
    embedding: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("memory", "uid")
    refers: ClassVar[tuple[Reference, ...]] = (to("Memory", "memory"),)


class Step(MemoryRecord):
    """A step. `memory` stands for its HAS_STEP."""

    kind: Literal["Step"]
    memory: MemoryUid
    number: Integer
    question: Text | None = None
    strategy: Text
    judgement: Text | None = None
    operations: Operations
    planned: Planned | None = None
    filters: Filters | None = None
    notes: Texts
    seconds: Number
    usage: Usage
    created_at: Time | None = None

    identity: ClassVar[tuple[str, ...]] = ("memory", "number")
    refers: ClassVar[tuple[Reference, ...]] = (to("Memory", "memory"),)


class NextStep(MemoryRecord):
    """From a step to the next one."""

    kind: Literal["NEXT_STEP"]
    memory: MemoryUid
    source: Integer
    target: Integer

    refers: ClassVar[tuple[Reference, ...]] = (to("Step", "memory", "source"), to("Step", "memory", "target"))


class MemoryPoint(MemoryRecord):
    """A memory point. `memory` stands for its HAS_POINT."""

    kind: Literal["MemoryPoint"]
    uid: OwnUid
    memory: MemoryUid
    description: Text
    born: Integer
    died: Integer | None = None
    deleted_chunks: Texts | None = None
    embedding: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("memory", "uid")
    refers: ClassVar[tuple[Reference, ...]] = (to("Memory", "memory"),)


class Involves(MemoryRecord):
    """From a memory point to an entity that it involves."""

    kind: Literal["INVOLVES"]
    memory: MemoryUid
    point: OwnUid
    entity: Text

    refers: ClassVar[tuple[Reference, ...]] = (to("MemoryPoint", "memory", "point"), to_entity("entity"))


class SupportedBy(MemoryRecord):
    """From a memory point to a chunk that supports it."""

    kind: Literal["SUPPORTED_BY"]
    memory: MemoryUid
    point: OwnUid
    chunk: Uid

    refers: ClassVar[tuple[Reference, ...]] = (to("MemoryPoint", "memory", "point"), to("Chunk", "chunk"))


class _Succession(MemoryRecord):
    memory: MemoryUid
    source: OwnUid
    target: OwnUid

    refers: ClassVar[tuple[Reference, ...]] = (
        to("MemoryPoint", "memory", "source"),
        to("MemoryPoint", "memory", "target"),
    )


class RevisedAs(_Succession):
    """From a memory point to the one that it was revised as."""

    kind: Literal["REVISED_AS"]


class MergedInto(_Succession):
    """From a memory point to the one that it was merged into."""

    kind: Literal["MERGED_INTO"]


class SubQuery(MemoryRecord):
    """A sub-query. `step` stands for its ASKED."""

    kind: Literal["SubQuery"]
    memory: MemoryUid
    step: Integer
    number: Integer
    text: Text
    concern: Text | None = None
    strategy: Text
    relations: Texts
    built: Built | None = None

    identity: ClassVar[tuple[str, ...]] = ("memory", "step", "number")
    refers: ClassVar[tuple[Reference, ...]] = (to("Step", "memory", "step"),)


class Retrieved(MemoryRecord):
    """From a sub-query to an entity or a chunk that it retrieved."""

    kind: Literal["RETRIEVED"]
    memory: MemoryUid
    step: Integer
    number: Integer
    entity: Text | None = None
    chunk: Uid | None = None
    rank: Integer
    score: Number | None = None

    refers: ClassVar[tuple[Reference, ...]] = (
        to("SubQuery", "memory", "step", "number"),
        (*to_entity("entity"), *to("Chunk", "chunk")),
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        one_of(self, "entity", "chunk")
        return self


class Targets(MemoryRecord):
    """From a sub-query to a memory point that it digs into."""

    kind: Literal["TARGETS"]
    memory: MemoryUid
    step: Integer
    number: Integer
    point: OwnUid

    refers: ClassVar[tuple[Reference, ...]] = (
        to("SubQuery", "memory", "step", "number"),
        to("MemoryPoint", "memory", "point"),
    )


class Answer(MemoryRecord):
    """An answer. `memory` stands for its HAS_ANSWER."""

    kind: Literal["Answer"]
    uid: OwnUid
    memory: MemoryUid
    question: Text
    text: Text
    status: Text
    step: Integer
    model: Text
    notes: Texts
    seconds: Number
    usage: Usage
    created_at: Time

    identity: ClassVar[tuple[str, ...]] = ("memory", "uid")
    refers: ClassVar[tuple[Reference, ...]] = (to("Memory", "memory"),)


class Citation(MemoryRecord):
    """A citation. `answer` stands for its HAS_CITATION."""

    kind: Literal["Citation"]
    uid: OwnUid
    memory: MemoryUid
    answer: OwnUid
    marker: Integer
    chunk: Text
    document: Text
    title: Text
    quote: Text
    start: Integer | None = None
    end: Integer | None = None
    source_id: Text
    built: Text | None = None
    behind: Texts | None = None
    message: Text | None = None
    speaker: Text | None = None
    time: Text | None = None
    withdrawn: Boolean

    identity: ClassVar[tuple[str, ...]] = ("memory", "uid")
    refers: ClassVar[tuple[Reference, ...]] = (to("Answer", "memory", "answer"),)


class Cites(MemoryRecord):
    """From a citation to the chunk, or to the row of a build, that it quotes."""

    kind: Literal["CITES"]
    memory: MemoryUid
    citation: OwnUid
    chunk: Uid | None = None
    built: Uid | None = None

    refers: ClassVar[tuple[Reference, ...]] = (to("Citation", "memory", "citation"),)
    may_refer: ClassVar[tuple[Reference, ...]] = (to("Chunk", "chunk"), to("Built", "built"))
