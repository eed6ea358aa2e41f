"""What answers look like, for the description of the service: the library's values as `--json` writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model

from hgmem.values.access import Job
from hgmem.values.differences import ComparedPoint, MemoryDiff
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.records import Answer, Lineage, Memory, MemoryPoint, MemorySummary, Passage, Step
from hgmem.values.reports import CorpusStatus
from hgmem.values.usage import Usage

T = TypeVar("T")
Shape = type[BaseModel]
_known: dict[type, Shape] = {}
BYTES = {"schema": {"type": "string", "format": "binary"}}
FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": BYTES}}}


class Problem(BaseModel):
    """What is wrong, and what to do, in one line: `detail` (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    memory: str | None = Field(None, description="The memory that can be continued, if there is one.")


class Page(BaseModel, Generic[T]):
    """A page of a list. `next` is what to pass as `after=` for the following page, or null."""

    items: list[T]
    next: str | None


class Items(BaseModel, Generic[T]):
    """A whole list."""

    items: list[T]


class Corpus(BaseModel):
    """A corpus."""

    corpus: str
    status: str
    embedding_model: str
    dimensions: int | str
    created_at: str


class DocumentRow(BaseModel):
    """A document of a corpus."""

    uid: str
    id: str
    title: str
    source: str
    status: str
    conversation: str
    chunks: int


class Deleted(BaseModel):
    """How many documents were deleted."""

    deleted: int


class State(BaseModel):
    """Whether the process runs, or is ready."""

    status: str


class ModelRow(BaseModel):
    """A system, or `system/recipe`."""

    id: str
    object: str
    created: int
    owned_by: str


class ModelList(BaseModel):
    """The systems as models."""

    object: str
    data: list[ModelRow]


class ReplyMessage(BaseModel):
    """The message of a completion."""

    role: str
    content: str


class Choice(BaseModel):
    """The only choice of a completion."""

    index: int
    message: ReplyMessage
    finish_reason: str


class TokenCounts(BaseModel):
    """The tokens of language models that the question cost."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """An answer in the form of a chat completion. `hgmem` has its memory and citations."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: TokenCounts
    hgmem: dict[str, Any]


def shape(of: type, *, without: Sequence[str] = (), name: str = "", **more: Any) -> Shape:
    """Return the model of a dataclass: its fields but some, and `more` fields or other types of them."""
    hints = get_type_hints(of)
    own = {one.name: _written(hints[one.name]) for one in fields(of) if one.name not in without}
    described = {field: (kind, ...) for field, kind in {**own, **more}.items()}
    made: Shape = create_model(name or of.__name__, __doc__=of.__doc__, **described)  # type: ignore[call-overload]
    return made if name else _known.setdefault(of, made)


def _written(kind: Any) -> Any:
    """Return a type as it is written: models for dataclasses, lists and dictionaries for what holds others."""
    origin, inner = get_origin(kind), [one for one in get_args(kind) if one is not ...]
    if is_dataclass(kind) and isinstance(kind, type):
        return _known.get(kind) or shape(kind)
    if origin is Annotated:
        return _written(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_written, inner))]  # noqa: UP007
    if origin is tuple:
        return list[_written(inner[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[inner[0], _written(inner[1])]  # type: ignore[misc,valid-type]
    return kind


_hit = {"without": ("name", "source_id")}
shape(Usage, requests=int, prompt_tokens=int, completion_tokens=int, cached_tokens=int)
POINT = shape(MemoryPoint, entities=list[str])
_RELATION = shape(Hit, name="RelationHit", **_hit)
_ENTITY, _CHUNK = shape(Hit, name="EntityHit", without=("source_id",)), shape(Hit, name="ChunkHit", without=("name",))
_BUILT = get_type_hints(Retrieved)["built"]
_HITS = create_model(
    "Hits",
    entities=(list[_ENTITY], ...),  # type: ignore[valid-type]
    relations=(list[_RELATION], ...),  # type: ignore[valid-type]
    chunks=(list[_CHUNK], ...),  # type: ignore[valid-type]
    built=(_written(_BUILT), ...),
)
_SUBQUERY = shape(Subquery)
_RETRIEVED = shape(Subquery, name="AskedSubquery", retrieved=_HITS)
STEP = shape(Step, without=("retrieved",), subqueries=list[_RETRIEVED])  # type: ignore[valid-type]
ANSWER = shape(Answer, without=("text",), answer=str)
_OF_MEMORY = ("corpus", "system", "memory", "points", "steps", "usage")
_IN_MEMORY = shape(Answer, name="MemoryAnswer", without=_OF_MEMORY)
MEMORY = shape(Memory, without=("uid",), memory=str, answers=list[_IN_MEMORY])  # type: ignore[valid-type]
LINEAGE = shape(
    MemoryPoint,
    name="Lineage",
    entities=list[str],
    kind=get_type_hints(Lineage)["kind"],
    parts=list["Lineage"],
    into=list[str],
    copied_from=str,
)
_known[ComparedPoint] = shape(MemoryPoint, name="ComparedPoint", entities=list[str], key=str)
DIFF = shape(MemoryDiff)
JOB, STATUS = shape(Job), shape(CorpusStatus)
JOBS, SUMMARIES, PASSAGES = Page[JOB], Page[shape(MemorySummary)], Items[shape(Passage)]  # type: ignore[valid-type,misc]
