"""Types of fields: what a value must be, so that all that reads it later can."""

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, TypeAdapter

from hgmem.corpus.archive.lines import LineError
from hgmem.extraction.contributions import EntityContribution, RelationContribution
from hgmem.extraction.replies import Extraction
from hgmem.graph.record_fields import FieldType
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
from hgmem.values.evidence import BuiltHit, Subquery
from hgmem.values.records import Operation

FLOAT = np.dtype("<f4")

_MEMORY = "m[0-9a-f]{16}"
_TIME = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])(\[[A-Za-z0-9_/+-]{1,64}\])?$"
)


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


_STORED = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Condensed(BaseModel):
    """A summarized description (`text`) and the hash of its sources (`of`)."""

    model_config = _STORED
    text: str
    of: str


def _json_of(type_: Any, *, needs: str = "") -> Any:
    """Return the type of texts that are JSON of this type. Each object of a list `needs` this key, if one is named."""
    validated = TypeAdapter(type_, config=_STORED).validate_json

    def read(text: str) -> None:
        validated(text)
        if needs and any(needs not in each for each in json.loads(text)):
            raise ValueError(f"{needs} is missing")

    return _read_by(read)


def _read_by(read: Callable[[str], object]) -> Any:
    """Return the type of texts that hold such JSON. An error inside counts for the whole text."""

    def checked(text: str) -> str:
        try:
            read(text)
        except (RecursionError, ValueError):
            raise ValueError("JSON of another type") from None
        return text

    return Annotated[Text, AfterValidator(checked)]


def _text_like(pattern: str) -> Any:
    return Annotated[str, StringConstraints(pattern=f"^{pattern}$")]


def _properties_of(check: Callable[[object], object]) -> Any:
    return dict[Annotated[str, AfterValidator(_own_property)], Annotated[Any, PlainValidator(check)]]


Text: TypeAlias = Annotated[str, AfterValidator(_whole)]
Integer: TypeAlias = Annotated[int, Field(ge=SMALLEST, le=LARGEST)]
Number: TypeAlias = Annotated[int | float, PlainValidator(_number)]  # an integer stays one
Time: TypeAlias = Annotated[str, StringConstraints(pattern=_TIME), AfterValidator(_day)]
_Counts: TypeAlias = dict[str, Number | dict[str, Number | dict[str, Number]]]

TYPES: Mapping[FieldType, Any] = {
    "text": Text,
    "texts": list[Text],
    "integer": Integer,
    "number": Number,
    "boolean": bool,
    "time": Time,
    "counts": dict[str, Integer],
    "uid": _text_like("[0-9a-f]{32}"),
    "own": _text_like(f"{_MEMORY}-[0-9a-z-]{{1,80}}"),
    "memory": _text_like(_MEMORY),
    "memory or none": _text_like(f"({_MEMORY})?"),
    "vector": str,  # `check_vector` looks into it
    "vector of any length": str,  # `check_plain_vector` does
    "label or type of at most 40 letters": _text_like("[A-Za-z_]{1,40}"),  # `OwnNamesCheck` knows which are allowed
    "properties": _properties_of(_property),
    "properties without lists": _properties_of(_scalar),
    "JSON": _json_of(Any),
    "object": _json_of(dict[str, Any]),
    "extraction": _read_by(Extraction.model_validate_json),
    "condensed": _read_by(_Condensed.model_validate_json),
    "given entities": _json_of(list[EntityContribution], needs="chunks"),
    "given relations": _json_of(list[RelationContribution], needs="chunks"),
    "operations": _json_of(list[Operation], needs="parts"),
    "planned": _json_of(list[Subquery], needs="targets"),
    "retrieved built rows": _json_of(list[BuiltHit]),
    "usage": _json_of(_Counts),
    "filters": _json_of(dict[str, list[str]]),
}
"""The type of a value in a line, by the type of its field."""


def pack(vector: Any) -> str:
    """Return a vector as the base64 of its float32, lowest byte first."""
    return base64.b64encode(np.asarray(vector, dtype=FLOAT).tobytes()).decode()


def unpack(text: str) -> Vectors:
    """Return the vector of `pack`, bit for bit."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=FLOAT)


def check_vector(text: str, *, dimensions: int, field: str) -> None:
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
