"""What a record type is: its fields, its links and what it refers to, and functions that write these down."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

# What a value must be. `hgmem/corpus/archive/field_types.py` checks it.
_Plain: TypeAlias = Literal["text", "texts", "integer", "number", "boolean", "time", "counts"]
_Uid: TypeAlias = Literal["uid", "own", "memory", "memory or none"]  # own: begins with the uid of the record's memory
_Vector: TypeAlias = Literal["vector", "vector of any length"]  # the first one has the corpus's dimensions
_Systems: TypeAlias = Literal["label or type of at most 40 letters", "properties", "properties without lists"]
_JsonOfCorpus: TypeAlias = Literal["JSON", "object", "extraction", "condensed", "given entities", "given relations"]
_JsonOfMemory: TypeAlias = Literal["operations", "planned", "retrieved built rows", "usage", "filters"]
FieldType: TypeAlias = _Plain | _Uid | _Vector | _Systems | _JsonOfCorpus | _JsonOfMemory
JSON = frozenset((*get_args(_JsonOfCorpus), *get_args(_JsonOfMemory)))
VECTORS = frozenset(get_args(_Vector))
# kept: a property, and in archives. archive: only there, as the graph has a relationship instead or it follows from
# properties. derived: only a property, which follows from the rest. never: only a property, of a run.
Rule: TypeAlias = Literal["kept", "archive", "derived", "never"]

# The type of what a record refers to, and the fields that give its identity; one of several is enough.
Reference: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

EVERYWHERE = "corpus"  # a property of every node and every RELATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a record. An optional one is absent, never null."""

    name: str
    type: FieldType
    meaning: str
    optional: bool = False
    rule: Rule = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A relationship that the record of a node stands for. It leads from the node (`outgoing`) or to it."""

    type: str
    to: Reference
    outgoing: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """A label, or a relationship type with its `source` and `target`.

    `identity` are the fields that tell one record from another of its type, `also_known_by` others by which records
    refer to it. `link` is the relationship that a node's record stands for, `refers` what else it names.
    Archives have no records of a `derived` type, which follow from others.
    """

    name: str
    about: str
    fields: tuple[Field, ...]
    identity: tuple[str, ...] = ()
    also_known_by: tuple[tuple[str, ...], ...] = ()
    link: Link | None = None
    source: Reference = ()
    target: Reference = ()
    refers: tuple[Reference, ...] = ()
    derived: bool = False

    @cached_property
    def archived(self) -> tuple[Field, ...]:
        """The fields of a line in an archive, in its order."""
        return tuple(field for field in self.fields if field.rule in ("kept", "archive"))

    @cached_property
    def kept(self) -> tuple[Field, ...]:
        """The fields that are properties and are kept in archives."""
        return tuple(field for field in self.fields if field.rule == "kept")

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that a stored row, or a record, may have."""
        return frozenset((EVERYWHERE, *(field.name for field in self.fields)))

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """What comes before the record, if the record names it."""
        found = (self.source, self.target, self.link.to if self.link else (), *self.refers)
        return tuple(reference for reference in found if reference)


def has(name: str, type_: FieldType, meaning: str, *, rule: Rule = "kept") -> Field:
    """Return a field that every record of its type has."""
    return Field(name=name, type=type_, meaning=meaning, rule=rule)


def may_have(name: str, type_: FieldType, meaning: str, *, rule: Rule = "kept") -> Field:
    """Return a field that may be absent."""
    return Field(name=name, type=type_, meaning=meaning, rule=rule, optional=True)


def ends(source: tuple[FieldType, str], target: tuple[FieldType, str]) -> tuple[Field, Field]:
    """Return the fields for the ends of a relationship, each with its type and meaning."""
    return has("source", *source, rule="archive"), has("target", *target, rule="archive")


def record(name: str, about: str, *fields: Field, **more: Any) -> RecordType:
    """Return a record type."""
    return RecordType(name=name, about=about, fields=fields, **more)


def to(name: str, *fields: str) -> Reference:
    """Return a reference to a record of this type by the fields that give its identity."""
    return ((name, fields),)


def to_entity(field: str) -> Reference:
    """Return a reference to an entity of the corpus, or of the record's own memory."""
    return (*to("Entity", field), *to("Provisional", "memory", field))
