"""Settings, recipes and the properties of the graph as Markdown tables, read off the code that defines them."""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from hgmem.archive.kinds import KINDS
from hgmem.settings import Settings
from hgmem.systems.recipes import RECIPES, HGMemConfig

# What an archive's types are called for people.
_CALLED = {"texts": "list of texts", "vector": "vector (float32)", "own": "uid", "memory": "uid of its memory"}


def settings() -> str:
    """Return a row for every field of `Settings`: environment variable, default, meaning."""
    head = "| variable | default | |\n|---|---|---|\n"
    return head + "\n".join(_setting(name, info) for name, info in Settings.model_fields.items())


def recipes() -> str:
    """Return a row for every setting of a recipe, with its value in each of the named ones."""
    names = ("default", "paper", "code", "compact", "single")
    columns = [dict(_leaves(RECIPES[name])) for name in names]
    head = f"| setting | {' | '.join(f'`{name}`' for name in names)} |\n|---|{'---|' * len(names)}\n"
    rows = (
        f"| `{name}` | {' | '.join(_value(column[name]) for column in columns)} |" for name, _ in _leaves(HGMemConfig())
    )
    return head + "\n".join(rows)


def properties() -> str:
    """Return a row for every label and relationship type with its properties; `?` marks those that may be absent."""
    rows = (f"| `{kind.name}` | {_properties(kind.fields)} |" for kind in KINDS.values())
    return "| label or type | properties |\n|---|---|\n" + "\n".join(rows)


def _setting(name: str, info: FieldInfo) -> str:
    alias = info.validation_alias
    choices = [str(each) for each in alias.choices if str(each).isupper()] if isinstance(alias, AliasChoices) else []
    variables = " ".join(f"`{each}`" for each in choices or [f"HGMEM_{name.upper()}"])
    said = (info.description or "").replace("|", "\\|")
    return f"| {variables} | {_default(info)} | {said} |"


def _default(info: FieldInfo) -> str:
    made = info.get_default(call_default_factory=True)
    if isinstance(made, Path):
        return "the user's own folder"
    if made is None or isinstance(made, SecretStr):
        return ""
    if isinstance(made, tuple | frozenset):
        return ", ".join(f"`{each}`" for each in (sorted(made) if isinstance(made, frozenset) else made))
    return f"`{made:,}`".replace(",", "_") if isinstance(made, int) and not isinstance(made, bool) else _value(made)


def _leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    for each in fields_of(config):
        value = getattr(config, each.name)
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", value


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value not in ("", {}) else ""


def _properties(types: Any) -> str:
    return ", ".join(f"`{name}{'?' if type_.endswith('?') else ''}` {_type(type_)}" for name, type_ in types.items())


def _type(type_: str) -> str:
    bare = type_.removesuffix("?")
    return _CALLED.get(bare, bare)
