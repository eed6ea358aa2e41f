"""JSON Schemas of replies, in the subset that all servers with structured outputs support."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from hgmem.values.task import Task

_LONGEST = 200  # characters of a description
_KEPT = ("type", "enum")


def schema_of(task: Task[Any]) -> dict[str, Any]:
    """Return the schema that a server is held to: that of the task's reply type, narrowed if the task does so."""
    schema = json_schema(task.reply_type)
    narrowed = getattr(task, "narrowed", None)
    return narrowed(schema) if narrowed else schema


def json_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a reply in the subset of strict structured outputs, as a new object.

    Every object has all its properties and no others, there are no references, and constraints that grammars can't
    enforce (defaults, bounds, formats, titles) are omitted.
    """
    schema: dict[str, Any] = json.loads(_strict_text(reply_type))
    return schema


@cache
def _strict_text(reply_type: type[BaseModel]) -> str:
    schema = reply_type.model_json_schema()
    return json.dumps(_strict(schema, schema.get("$defs", {}), ()))


def _strict(schema: Mapping[str, Any], definitions: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema in the subset. `within` are the definitions that enclose it."""
    if "$ref" in schema:
        return _inlined(schema, definitions, within)
    kept = {word: schema[word] for word in _KEPT if word in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "properties" in schema:
        parts = {name: _strict(part, definitions, within) for name, part in schema["properties"].items()}
        return kept | {"properties": parts, "required": list(parts), "additionalProperties": False}
    if "anyOf" in schema:
        kept["anyOf"] = [_strict(part, definitions, within) for part in schema["anyOf"]]
    if kept.get("type") == "array":
        kept["items"] = _items(schema, definitions, within)
    return kept | _described(schema)


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
    name = schema["$ref"].rpartition("/")[2]
    if name in within:
        raise TypeError(f"{name!r} contains itself: reply types must not be recursive")
    return _strict(definitions[name], definitions, (*within, name)) | _described(schema)


def _items(schema: Mapping[str, Any], definitions: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of an array's items. Those of a fixed-length tuple may have any of its types."""
    if "prefixItems" not in schema:
        return _strict(schema.get("items", {}), definitions, within)
    kinds: list[dict[str, Any]] = []
    for part in schema["prefixItems"]:
        kind = _strict(part, definitions, within)
        if kind not in kinds:
            kinds.append(kind)
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _described(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a field's description. Descriptions of objects are docstrings for developers and are omitted."""
    text = schema.get("description", "")
    return {"description": text} if 0 < len(text) <= _LONGEST else {}
