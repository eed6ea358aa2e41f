"""Options of a system: a recipe, and single options that override it by name."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from hgmem.errors import UsageError

Config = TypeVar("Config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Generic[Config]):
    """What a question asks for: a recipe, if one is named, and single options that override it by name."""

    recipe: Config | None = None
    changes: Mapping[str, object] = field(default_factory=dict)

    def applied(self, default: Config) -> Config:
        """Return the recipe, else the default, with the single options changed."""
        return changed(self.recipe or default, self.changes)


def changed(config: Config, changes: Mapping[str, object]) -> Config:
    """Return a config (a dataclass) with options changed by name, such as `retrieval.hops`. Text is converted."""
    values: dict[str, Any] = asdict(config)  # type: ignore[call-overload]
    for name, value in changes.items():
        *outer, last = name.split(".")
        place = values
        for part in outer:
            place = place.get(part) if isinstance(place.get(part), dict) else {}  # type: ignore[assignment]
        if last not in place or isinstance(place[last], dict):
            raise UsageError(f"unknown recipe option {name!r}: choose from {', '.join(_names(values))}")
        place[last] = _listed(value) if isinstance(place[last], tuple) else value
    return loaded(type(config), values)


def value_of(config: object, name: str) -> object:
    """Return the value of an option by its name, such as `retrieval.hops`."""
    return reduce(getattr, name.split("."), config)


def loaded(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the config of plain values, such as those that a memory was stored with."""
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"invalid recipe option {name!r}: {first['msg']}, got {first['input']!r}") from None


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
