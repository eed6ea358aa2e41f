"""The output of `--json`: plain dictionaries with stable keys."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from hgmem.values.evidence import Hit, Retrieved
from hgmem.values.records import Answer, Lineage, Memory, MemoryPoint, Step
from hgmem.values.usage import Usage

Row = dict[str, Any]


def answer(one: Answer) -> Row:
    """Return an answer with its citations, steps and points, superseded ones included."""
    return {
        "answer": one.text,
        **_attributes(one, without=("text", "points", "steps", "usage")),
        "points": [point(each) for each in one.points],
        "steps": [step(each) for each in one.steps],
        "usage": usage(one.usage),
    }


def memory(one: Memory) -> Row:
    """Return a memory as of the end of a step."""
    of_memory = ("corpus", "system", "memory", "points", "steps", "usage")
    return {
        "memory": one.uid,
        **_attributes(one, without=("uid", "points", "steps", "answers")),
        "points": [point(each) for each in one.points],
        "steps": [step(each) for each in one.steps],
        "answers": [_attributes(each, without=of_memory) for each in one.answers],
    }


def lineage(one: Lineage) -> Row:
    """Return a point with the kind of its creation and its parts, recursively."""
    return {**point(one.point), "kind": one.kind, "parts": [lineage(part) for part in one.parts]}


def point(one: MemoryPoint) -> Row:
    """Return a memory point with the names of its entities."""
    return {**_attributes(one, without=("entities",)), "entities": [entity.name for entity in one.entities]}


def step(one: Step) -> Row:
    """Return a step with what each of its sub-queries retrieved."""
    return {
        **_attributes(one, without=("retrieved", "usage")),
        "subqueries": [_subquery(each) for each in one.retrieved],
        "usage": usage(one.usage),
    }


def usage(one: Usage) -> Row:
    """Return the usage with its totals."""
    sums = ("requests", "prompt_tokens", "completion_tokens", "cached_tokens")
    return {**asdict(one), **{name: getattr(one, name) for name in sums}}


def _attributes(one: Any, *, without: Sequence[str]) -> Row:
    return {each.name: value(getattr(one, each.name)) for each in fields(one) if each.name not in without}


def value(one: object) -> Any:
    """Return a dataclass, or a sequence or mapping of such, as what JSON can hold. Raises `TypeError` for others."""
    if one is None or isinstance(one, str | int | float | bool):
        return one
    if is_dataclass(one) and not isinstance(one, type):
        return {each.name: value(getattr(one, each.name)) for each in fields(one)}
    if isinstance(one, Mapping):
        return {str(name): value(each) for name, each in one.items()}
    if isinstance(one, Sequence):
        return [value(each) for each in one]
    raise TypeError(f"{type(one).__name__!r} cannot be written as JSON")


def _subquery(one: Retrieved) -> Row:
    return {
        "text": one.subquery.text,
        "concern": one.subquery.concern,
        "strategy": one.subquery.strategy,
        "targets": list(one.subquery.targets),
        "retrieved": {
            "entities": _hits(one.entities, "name"),
            "relations": _hits(one.relations),
            "chunks": _hits(one.chunks, "source_id"),
            "built": [asdict(hit) for hit in one.built],
        },
    }


def _hits(hits: Sequence[Hit], *more: str) -> list[Row]:
    return [{name: getattr(hit, name) for name in ("uid", "rank", "score", *more)} for hit in hits]
