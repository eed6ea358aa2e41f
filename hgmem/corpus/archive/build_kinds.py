"""Records of what systems have built: builds, units, rows, and how they are joined. They name no system."""

from typing import ClassVar, Literal

from hgmem.corpus.archive.fields import Boolean, Integer, OwnName, OwnProperties, OwnScalars, Text, Time, Uid, Vector
from hgmem.corpus.archive.nested import AnyJson, Object
from hgmem.corpus.archive.schema import ArchiveRecord, Reference, to


class BuildsRecord(ArchiveRecord):
    """One line about a build, which version 1 of the format has none of."""


class Build(BuildsRecord):
    """A system's build of the corpus."""

    kind: Literal["Build"]
    uid: Uid
    system: Text
    status: Text
    settings: Object
    model: Text
    change: Text | None = None
    created_at: Time
    finished_at: Time | None = None
    changed_at: Time | None = None

    identity: ClassVar[tuple[str, ...]] = ("system",)


class Unit(BuildsRecord):
    """A unit of a build. `system` stands for its HAS_UNIT."""

    kind: Literal["Unit"]
    uid: Uid
    system: Text
    stage: Text
    key: Text
    digest: Text | None = None
    status: Text
    attempts: Integer
    error: Text | None = None
    output: AnyJson | None = None
    document: Text | None = None
    inputs: Integer | None = None
    calls: Integer | None = None
    tokens: Integer | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)
    also_known_by: ClassVar[tuple[tuple[str, ...], ...]] = (("system", "uid"),)
    refers: ClassVar[tuple[Reference, ...]] = (to("Build", "system"),)


class Built(BuildsRecord):
    """A built row. `unit` stands for its MADE, and is absent for a learnt row.

    `replaced_vectors` says that it has an `own_embedding`, also where the archive has no vectors.
    """

    kind: Literal["Built"]
    uid: Uid
    system: Text
    label: OwnName
    key: Text
    unit: Uid | None = None
    learnt: Boolean | None = None
    document: Text
    text: Text
    own_properties: OwnProperties
    replaced_vectors: Boolean | None = None
    embedding: Vector | None = None
    own_embedding: Vector | None = None
    vector: Vector | None = None

    identity: ClassVar[tuple[str, ...]] = ("uid",)
    also_known_by: ClassVar[tuple[tuple[str, ...], ...]] = (("system", "uid"),)
    may_refer: ClassVar[tuple[Reference, ...]] = (to("Unit", "system", "unit"),)


class RestsOn(BuildsRecord):
    """From a row or a unit to a chunk, row or unit that it was made from."""

    kind: Literal["RESTS_ON"]
    source: Uid
    target: Uid

    refers: ClassVar[tuple[Reference, ...]] = (
        (*to("Built", "source"), *to("Unit", "source")),
        (*to("Chunk", "target"), *to("Built", "target"), *to("Unit", "target")),
    )


class Extends(BuildsRecord):
    """From a unit to a row of another unit to which it gives relationships, and a vector if `gives_vector`."""

    kind: Literal["EXTENDS"]
    system: Text
    unit: Uid
    row: Uid
    gives_vector: Boolean

    refers: ClassVar[tuple[Reference, ...]] = (to("Unit", "system", "unit"), to("Built", "system", "row"))


class OwnRelationship(BuildsRecord):
    """A relationship of a system's own type, from a built row. `unit` wrote it, unless it is learnt."""

    kind: Literal["RELATIONSHIP"]
    system: Text
    type: OwnName
    source: Uid
    target: Uid
    unit: Uid | None = None
    own_properties: OwnScalars

    refers: ClassVar[tuple[Reference, ...]] = (
        to("Built", "system", "source"),
        (*to("Built", "target"), *to("Chunk", "target"), *to("Entity", "target")),
    )
    may_refer: ClassVar[tuple[Reference, ...]] = (to("Unit", "system", "unit"),)
