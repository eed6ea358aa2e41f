"""The kinds of records in an archive: a header, the kinds below, a footer (docs/reference/archive.md).

There is a kind for each label and relationship type of ours, and one for all relationships of systems' own types. A
new one is a class in `corpus_kinds.py`, `build_kinds.py` or `memory_kinds.py` and its name in `Line`. What says where
a thing belongs has no record of its own: a chunk's `document` is FROM_DOCUMENT, the `memory` of a step and of a point
is HAS_STEP and HAS_POINT, and so on.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, TypeAdapter, ValidationError

from hgmem.corpus.archive.build_kinds import Build, BuildsRecord, Built, Extends, OwnRelationship, RestsOn, Unit
from hgmem.corpus.archive.corpus_kinds import Chunk, Document, Entity, FromChunk, NextChunk, Relates
from hgmem.corpus.archive.fields import Boolean, Called, Integer, Text, Time
from hgmem.corpus.archive.lines import Record
from hgmem.corpus.archive.memory_kinds import (
    Answer,
    Citation,
    Cites,
    Involves,
    Memory,
    MemoryPoint,
    MergedInto,
    NextStep,
    Provisional,
    Retrieved,
    RevisedAs,
    Step,
    SubQuery,
    SupportedBy,
    Targets,
)
from hgmem.corpus.archive.nested import Object
from hgmem.corpus.archive.schema import ArchiveRecord, MemoryRecord, problem

FORMAT = "hgmem-archive"
VERSIONS = (1, 2)  # 2 has builds; an archive without them is still written as 1
HEADER, FOOTER = "archive", "end"


class Header(ArchiveRecord):
    """The first line: which corpus it is, what its vectors are, and whether they and the memories are in the file."""

    kind: Literal["archive"]
    format: Text
    version: Integer
    hgmem: Text
    corpus: Text
    embedding_model: Text
    dimensions: Integer
    schema_version: Integer
    settings: Object
    created_at: Time
    imported: Text | None = None
    embeddings: Boolean
    memories: Boolean


class Footer(ArchiveRecord):
    """The last line: how many records of each kind there are."""

    kind: Literal["end"]
    counts: Annotated[dict[str, Integer], Called("object")]


Line: TypeAlias = (
    Header
    | Document
    | Chunk
    | NextChunk
    | Entity
    | FromChunk
    | Relates
    | Build
    | Unit
    | Built
    | RestsOn
    | Extends
    | OwnRelationship
    | Memory
    | Provisional
    | Step
    | NextStep
    | MemoryPoint
    | Involves
    | SupportedBy
    | RevisedAs
    | MergedInto
    | SubQuery
    | Retrieved
    | Targets
    | Answer
    | Citation
    | Cites
    | Footer
)
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])
_BY_NAME: Mapping[str, type[ArchiveRecord]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(Line)
}

KINDS = {name: model for name, model in _BY_NAME.items() if name not in (HEADER, FOOTER)}
OF_BUILDS = frozenset(name for name, model in KINDS.items() if issubclass(model, BuildsRecord))
OF_MEMORIES = frozenset(name for name, model in KINDS.items() if issubclass(model, MemoryRecord))


def parse(record: Record) -> Line:
    """Return the record as an instance of its kind, or raise `LineError`."""
    try:
        return _LINE.validate_python(record)
    except ValidationError as error:
        raise problem(error, _BY_NAME[record["kind"]], record) from None
