"""Configs of systems: options changed by name, and configs made of plain values."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hgmem.errors import UsageError

Config = TypeVar("Config")
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


def changed(config: Config, changes: Mapping[str, object], *, before: Mapping[str, Any] | None = None) -> Config:
    """Return a config (a dataclass) with options changed by name, such as `retrieval.hops`. Text is converted.

    Plain values that were stored `before` replace those of the config. They are checked once they are changed.
    """
    values: dict[str, Any] = asdict(config) | dict(before or {})  # type: ignore[call-overload]
    for name, value in changes.items():
        *outer, last = name.split(".")
        place = values
        for part in outer:
            place = place.get(part) if isinstance(place.get(part), dict) else {}  # type: ignore[assignment]
        if last not in place or isinstance(place[last], dict):
            raise UsageError(f"unknown recipe option {name!r}: choose from {', '.join(_names(values))}")
        place[last] = _listed(value) if isinstance(place[last], tuple | list) else value
    return loaded(type(config), values)


def loaded(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the config of plain values, such as those that a memory was stored with."""
    try:
        loaded_config: Config = _adapter(kind).validate_python(dict(values))
        return loaded_config
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        what, given = first["msg"].removeprefix("Value error, "), repr(first["input"])
        got = "" if given in what else f", got {given}"
        raise UsageError(f"invalid recipe option {name!r}: {what}{got}") from None


def _listed(value: object) -> object:
    """Return a list that was given as text: as JSON, or with commas."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def _names(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in values.items():
        found += _names(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return found
