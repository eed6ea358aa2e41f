"""The output of `--json`: plain dictionaries with stable keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from hgmem.values.differences import ComparedPoint
from hgmem.values.evidence import Hit, Retrieved
from hgmem.values.records import Answer, Lineage, Memory, MemoryPoint, Step
from hgmem.values.usage import Usage

Row = dict[str, Any]


def written(value: object, *, indent: int | None = None) -> str:
    """Return a value, with dataclasses anywhere in it, as JSON. Raises `TypeError` for other objects."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)


def row(one: object) -> Row:
    """Return a dataclass as JSON has it: a mapping of plain values."""
    found: Row = json.loads(written(one))
    return found


def _plain(one: object) -> Any:
    if isinstance(one, Mapping):
        return dict(one)
    if isinstance(one, Sequence):
        return list(one)
    if is_dataclass(one) and not isinstance(one, type):
        return _shaped(one)
    raise TypeError(f"{type(one).__name__!r} cannot be written as JSON")


def _shaped(one: object) -> Row:
    match one:
        case Answer():
            return {"answer": one.text, **_attributes(one, without=("text",))}
        case Memory():
            of_memory = ("corpus", "system", "memory", "points", "steps", "usage")
            answers = [_attributes(each, without=of_memory) for each in one.answers]
            return {"memory": one.uid, **_attributes(one, without=("uid",)), "answers": answers}
        case Lineage():
            return {**_shaped(one.point), **_attributes(one, without=("point",))}
        case ComparedPoint():
            return {**_shaped(one.point), "key": one.key}
        case MemoryPoint():
            return {**_attributes(one), "entities": [entity.name for entity in one.entities]}
        case Step():
            return {**_attributes(one, without=("retrieved",)), "subqueries": one.retrieved}
        case Retrieved():
            hits = {
                "entities": _hits(one.entities, "name"),
                "relations": _hits(one.relations),
                "chunks": _hits(one.chunks, "source_id"),
                "built": one.built,
            }
            return {**_attributes(one.subquery), "retrieved": hits}
        case Usage():
            sums = ("requests", "prompt_tokens", "completion_tokens", "cached_tokens")
            return {**_attributes(one), **{name: getattr(one, name) for name in sums}}
    return _attributes(one)


def _attributes(one: Any, *, without: Sequence[str] = ()) -> Row:
    return {each.name: getattr(one, each.name) for each in fields(one) if each.name not in without}


def _hits(hits: Sequence[Hit], *more: str) -> list[Row]:
    return [{name: getattr(hit, name) for name in ("uid", "rank", "score", *more)} for hit in hits]
