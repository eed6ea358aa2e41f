"""Types of fields: what a value must be, so that all that reads it later can."""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np
from pydantic import ValidationError

from hgmem.archive.lines import LineError
from hgmem.contributions import Contribution, load_entities, load_relations
from hgmem.embed import Vectors
from hgmem.extract import Extraction
from hgmem.model import Operation, Subquery
from hgmem.text import has_half_pair

SHOWN = 80  # characters of a value in an error
FLOAT = np.dtype("<f4")

_MEMORY = r"m[0-9a-f]{16}"
_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
    r"(Z|[+-](0\d|1[0-7]):[0-5]\d)(\[[\w/+-]{1,64}\])?",
    re.ASCII,
)


def check_fields(record: Mapping[str, Any], types: Mapping[str, str]) -> None:
    """Raise `LineError` unless the record has these fields, of these types, and no others."""
    for name in record:
        if name not in types and name != "kind":
            raise LineError(f"it has a field {name[:SHOWN]!r}, which its kind has not")
    for name, type_ in types.items():
        if name not in record:
            if not type_.endswith("?"):
                raise LineError(f"it has no {name!r}")
            continue
        wanted = type_.removesuffix("?")
        if not _CHECKS[wanted](record[name]):
            raise LineError(f"{name!r} is no {wanted}: {_shown(record[name])}")
        if wanted == "own" and not record[name].startswith(f"{record['memory']}-"):
            raise LineError(f"{name!r} is of another memory: {_shown(record[name])}")


def pack(vector: Any) -> str:
    """Return a vector as the base64 of its float32, lowest byte first."""
    return base64.b64encode(np.asarray(vector, dtype=FLOAT).tobytes()).decode()


def unpack(text: str) -> Vectors:
    """Return the vector of `pack`, bit for bit."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=FLOAT)


def check_vector(text: str, *, dimensions: int) -> None:
    """Raise `LineError` unless this is a vector of the corpus, which a search can find."""
    try:
        vector = unpack(text)
    except (binascii.Error, ValueError):
        raise LineError("'embedding' is no base64 of float32") from None
    if len(vector) != dimensions:
        raise LineError(f"'embedding' has {len(vector)} dimensions, the archive's have {dimensions}")
    if not np.isfinite(vector).all() or not vector.any():
        raise LineError("'embedding' is a vector without direction")


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _text(value: object) -> bool:
    return isinstance(value, str) and not has_half_pair(value)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _number(value: object) -> bool:
    return _integer(value) or (isinstance(value, float) and math.isfinite(value))


def _boolean(value: object) -> bool:
    return isinstance(value, bool)


def _json(type_: type) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        try:
            return isinstance(value, str) and _text(value) and isinstance(json.loads(value), type_)
        except (ValueError, RecursionError):
            return False

    return holds


def _extraction(value: object) -> bool:
    try:
        return isinstance(value, str) and _text(value) and bool(Extraction.model_validate_json(value))
    except ValidationError:
        return False


def _condensed(value: object) -> bool:
    if not isinstance(value, str) or not _json(dict)(value):
        return False
    stored = json.loads(value)
    return isinstance(stored.get("of"), str) and isinstance(stored.get("text"), str)


def _given(load: Callable[[str], list[Any]]) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        try:
            if not isinstance(value, str) or not _json(list)(value):
                return False
            listed = [record["chunks"] for record in json.loads(value)]
            return all(isinstance(chunks, list) for chunks in listed) and all(map(_contribution, load(value)))
        except (AttributeError, KeyError, TypeError, ValueError):
            return False

    return holds


def _contribution(said: Contribution) -> bool:
    """Whether each of its values has its type: they come from JSON."""
    values = asdict(said)
    weight = values.pop("weight", 1.0)
    lists = [values.pop(name) for name in ("chunks", "keywords") if name in values]
    texts = [text for each in lists for text in each]
    return (
        _number(weight)
        and all(isinstance(each, tuple) for each in lists)
        and all(map(_text, [*values.values(), *texts]))
    )


def _records(type_: type) -> Callable[[object], bool]:
    """Return whether a value is JSON of a list of these, as memories are read back from."""
    lists = {"parts", "targets"}

    def holds(value: object) -> bool:
        try:
            if not isinstance(value, str) or not _json(list)(value):
                return False
            found = [asdict(type_(**record)) for record in json.loads(value)]
        except TypeError:
            return False
        return all(_texts(said) if name in lists else _text(said) for one in found for name, said in one.items())

    return holds


def _usage(value: object) -> bool:
    """Whether it is JSON of numbers by name, in objects in objects."""
    return isinstance(value, str) and _json(dict)(value) and all(map(_counts, json.loads(value).values()))


def _counts(value: object, *, depth: int = 2) -> bool:
    if not isinstance(value, dict):
        return _number(value)
    return depth > 0 and all(_counts(each, depth=depth - 1) for each in value.values())


def _filters(value: object) -> bool:
    return isinstance(value, str) and _json(dict)(value) and all(map(_texts, json.loads(value).values()))


def _time(value: object) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        return date.fromisoformat(value[:10]) is not None
    except ValueError:
        return False


def _matches(pattern: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "text": _text,
    "texts": _texts,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _json(dict),
    "operations": _records(Operation),
    "planned": _records(Subquery),
    "usage": _usage,
    "filters": _filters,
    "extraction": _extraction,
    "condensed": _condensed,
    "given entities": _given(load_entities),
    "given relations": _given(load_relations),
    "vector": _text,
    "time": _time,
    "uid": _matches(r"[0-9a-f]{32}"),
    "memory": _matches(_MEMORY),
    "memory or none": _matches(rf"({_MEMORY})?"),
    "own": _matches(rf"{_MEMORY}-[0-9a-z-]{{1,80}}"),
}
