"""Types of fields: what a value must be, so that all that reads it later can."""

import base64
import binascii
import math
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypeAlias, get_args

import numpy as np
from pydantic import AfterValidator, Field, PlainValidator, StringConstraints
from pydantic.fields import FieldInfo

from hgmem.corpus.archive.lines import LineError
from hgmem.models.embedding import Vectors
from hgmem.text.segmentation import has_half_pair
from hgmem.values.built import (
    LARGEST,
    OF_RELATIONSHIPS,
    OWN_PROPERTIES,
    SMALLEST,
    is_property,
    is_property_name,
    is_scalar,
)

FLOAT = np.dtype("<f4")

_MEMORY = "m[0-9a-f]{16}"
_TIME = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])(\[[A-Za-z0-9_/+-]{1,64}\])?$"
)


@dataclass(frozen=True, slots=True)
class Called:
    """What errors and the reference call a type of fields."""

    name: str


def type_name(field: FieldInfo) -> str:
    """Return what the type of a field is called, whether or not the field may be absent."""
    marks = field.metadata or get_args(field.annotation)[0].__metadata__
    return next(mark.name for mark in reversed(marks) if isinstance(mark, Called))


def _whole(text: str) -> str:
    if has_half_pair(text):
        raise ValueError("unpaired surrogate")
    return text


def _day(text: str) -> str:
    date.fromisoformat(text[:10])
    return text


def _number(value: object) -> int | float:
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and SMALLEST <= value <= LARGEST:
        return value
    raise ValueError("not a finite float or a 64-bit integer")


def _property(value: object) -> object:
    if not is_property(value):
        raise ValueError("not a value that Neo4j stores")
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            _whole(each)
    return value


def _own_property(name: str) -> str:
    if not is_property_name(name) or name in OWN_PROPERTIES | OF_RELATIONSHIPS:
        raise ValueError("not a name for a system's property")
    return name


def _scalar(value: object) -> object:
    if not is_scalar(value):
        raise ValueError("not a text, boolean or number")
    return _property(value)


Text: TypeAlias = Annotated[str, AfterValidator(_whole), Called("text")]
Texts: TypeAlias = Annotated[list[Text], Called("texts")]
Integer: TypeAlias = Annotated[int, Field(ge=SMALLEST, le=LARGEST), Called("integer")]
Number: TypeAlias = Annotated[int | float, PlainValidator(_number), Called("number")]  # an integer stays one
Boolean: TypeAlias = Annotated[bool, Called("boolean")]
Time: TypeAlias = Annotated[str, StringConstraints(pattern=_TIME), AfterValidator(_day), Called("time")]
Uid: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$"), Called("uid")]
MemoryUid: TypeAlias = Annotated[str, StringConstraints(pattern=f"^{_MEMORY}$"), Called("memory")]
MemoryUidOrEmpty: TypeAlias = Annotated[str, StringConstraints(pattern=f"^({_MEMORY})?$"), Called("memory or none")]
OwnUid: TypeAlias = Annotated[  # of what belongs to a memory: it begins with that one's
    str, StringConstraints(pattern=f"^{_MEMORY}-[0-9a-z-]{{1,80}}$"), Called("own")
]
OwnName: TypeAlias = Annotated[  # `OwnNamesCheck` knows which ones are allowed
    str, StringConstraints(pattern="^[A-Za-z_]{1,40}$"), Called("label or type of at most 40 letters")
]
OwnProperties: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(_own_property)], Annotated[Any, PlainValidator(_property)]],
    Called("properties"),
]
OwnScalars: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(_own_property)], Annotated[Any, PlainValidator(_scalar)]],
    Called("properties without lists"),
]
Vector: TypeAlias = Annotated[str, Called("vector")]  # `check_vector` looks into it


def pack(vector: Any) -> str:
    """Return a vector as the base64 of its float32, lowest byte first."""
    return base64.b64encode(np.asarray(vector, dtype=FLOAT).tobytes()).decode()


def unpack(text: str) -> Vectors:
    """Return the vector of `pack`, bit for bit."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=FLOAT)


def check_vector(text: str, *, dimensions: int, field: str = "embedding") -> None:
    """Raise `LineError` unless this is a vector of the corpus, which a search can find."""
    vector = _unpacked(text, field)
    if len(vector) != dimensions:
        raise LineError(f"field {field!r}: expected {dimensions} dimensions, got {len(vector)}")
    if not np.isfinite(vector).all() or not vector.any():
        raise LineError(f"field {field!r}: the vector is zero or not finite")


def check_plain_vector(text: str, *, field: str) -> None:
    """Raise `LineError` unless this is a vector of any length, which no index holds."""
    vector = _unpacked(text, field)
    if not len(vector) or not np.isfinite(vector).all():
        raise LineError(f"field {field!r}: the vector is empty or not finite")


def _unpacked(text: str, field: str) -> Vectors:
    try:
        return unpack(text)
    except (binascii.Error, ValueError):
        raise LineError(f"field {field!r}: expected base64 of float32") from None
