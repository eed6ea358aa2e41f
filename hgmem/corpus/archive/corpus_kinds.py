"""Records of a corpus: documents, chunks, entities, relations, and how they are joined."""

from typing import ClassVar, Literal

from hgmem.corpus.archive.fields import Boolean, Integer, MemoryUidOrEmpty, Number, Text, Texts, Time, Uid, Vector
from hgmem.corpus.archive.nested import Condensed, Extracted, GivenEntities, GivenRelations, Object
from hgmem.corpus.archive.schema import ArchiveRecord, Reference, to, to_entity


class Document(ArchiveRecord):
    """A document."""

    kind: Literal["Document"]
    uid: Uid
    title: Text
    source: Text
    sha256: Text
    metadata: Object
    status: Text
    chunking: Text | None = None
    message_number: Integer | None = None
    indexed_at: Time | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)


class Chunk(ArchiveRecord):
    """A chunk. `document` stands for its FROM_DOCUMENT."""

    kind: Literal["Chunk"]
    uid: Uid
    document: Uid
    position: Integer
    text: Text
    tokens: Integer
    start: Integer | None = None
    end: Integer | None = None
    status: Text
    error: Text | None = None
    attempts: Integer
    extraction: Extracted | None = None
    source_id: Text | None = None
    messages: Text | None = None
    embedding: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)
    refers: ClassVar[tuple[Reference, ...]] = (to("Document", "document"),)


class NextChunk(ArchiveRecord):
    """From a chunk to the next one of its document."""

    kind: Literal["NEXT_CHUNK"]
    source: Uid
    target: Uid

    refers: ClassVar[tuple[Reference, ...]] = (to("Chunk", "source"), to("Chunk", "target"))


class Entity(ArchiveRecord):
    """An entity of the corpus."""

    kind: Literal["Entity"]
    uid: Uid
    key: Text
    name: Text
    type: Text
    description: Text
    given: GivenEntities | None = None
    condensed: Condensed | None = None
    cut: Boolean | None = None
    stale: Boolean | None = None
    embedding: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)


class FromChunk(ArchiveRecord):
    """From an entity to a chunk that mentions it."""

    kind: Literal["FROM_CHUNK"]
    entity: Uid
    chunk: Uid

    refers: ClassVar[tuple[Reference, ...]] = (to("Entity", "entity"), to("Chunk", "chunk"))


class Relates(ArchiveRecord):
    """A relation between two entities. `memory` is empty for relations of the corpus."""

    kind: Literal["RELATES"]
    uid: Uid
    memory: MemoryUidOrEmpty
    source: Text
    target: Text
    description: Text
    keywords: Texts
    weight: Number
    chunks: Texts
    given: GivenRelations | None = None
    condensed: Condensed | None = None
    cut: Boolean | None = None
    stale: Boolean | None = None
    embedding: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)
    refers: ClassVar[tuple[Reference, ...]] = (to_entity("source"), to_entity("target"))
