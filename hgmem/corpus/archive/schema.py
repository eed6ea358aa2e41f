"""Base classes of all records: strict fields, a record's identity and its references."""

from typing import Any, ClassVar, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hgmem.corpus.archive.fields import type_name
from hgmem.corpus.archive.lines import LineError, Record

SHOWN = 80  # characters of a value in an error

# The kind of what a record refers to, and the fields that give its identity; one of several is enough.
Reference: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


def to(kind: str, *fields: str) -> Reference:
    """Return a reference to a record of this kind."""
    return ((kind, fields),)


def to_entity(field: str) -> Reference:
    """Return a reference to an entity of the corpus, or to one of the record's own memory."""
    return (("Entity", (field,)), ("Provisional", ("memory", field)))


class ArchiveRecord(BaseModel):
    """One line, its fields in the order of the format. An optional field is absent, never null.

    `identity` are the fields that tell one record from another of its kind, `also_known_by` others by which records
    refer to it. `refers` is what has to come before it, `may_refer` the same for fields that may be absent.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    kind: str
    properties: ClassVar[tuple[str, ...]]
    """The names of all fields but `kind`."""
    identity: ClassVar[tuple[str, ...]] = ()
    also_known_by: ClassVar[tuple[tuple[str, ...], ...]] = ()
    refers: ClassVar[tuple[Reference, ...]] = ()
    may_refer: ClassVar[tuple[Reference, ...]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.properties = tuple(name for name in cls.model_fields if name != "kind")

    @model_validator(mode="before")
    @classmethod
    def _has_no_null(cls, record: Record) -> Record:
        if None in record.values():
            name = next(name for name, value in record.items() if value is None)
            raise _error(f"field {name!r} is null: omit it")
        return record


class MemoryRecord(ArchiveRecord):
    """One line about a memory, or about something that belongs to one."""

    own: ClassVar[tuple[str, ...]]
    """The names of fields whose uids begin with the memory's."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        super().__pydantic_init_subclass__()
        cls.own = tuple(name for name in cls.properties if type_name(cls.model_fields[name]) == "own")

    @model_validator(mode="after")
    def _is_of_one_memory(self) -> Self:
        values = self.__dict__
        for name in self.own:
            if not values[name].startswith(f"{values['memory']}-"):
                raise _error(f"field {name!r} belongs to another memory: {_shown(values[name])}")
        return self


def problem(error: ValidationError, kind: type[ArchiveRecord], record: Record) -> LineError:
    """Return why a record does not fit its kind. Unknown fields are named first."""
    found = error.errors(include_url=False, include_input=False)
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    where = first["loc"][1:]  # after the kind
    if not where:
        return LineError(first["msg"])
    name = str(where[0])
    if first["type"] == "extra_forbidden":
        return LineError(f"unknown field {name[:SHOWN]!r}")
    if first["type"] == "missing":
        return LineError(f"field {name!r} is missing")
    return LineError(f"field {name!r}: expected {type_name(kind.model_fields[name])}, got {_shown(record[name])}")


def one_of(record: ArchiveRecord, *names: str) -> None:
    """Raise what pydantic collects unless the record has exactly one of these fields."""
    if sum(getattr(record, name) is not None for name in names) != 1:
        raise _error(f"expected exactly one of the fields {' and '.join(map(repr, names))}")


def _error(said: str) -> PydanticCustomError:
    return PydanticCustomError("archive", "{said}", {"said": said})


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
