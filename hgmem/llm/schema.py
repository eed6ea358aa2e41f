"""JSON Schemas of replies, in the words that every server with structured outputs understands."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

_LONGEST = 200  # characters of a description
_KEPT = ("type", "enum")


def json_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a reply in the subset of strict structured outputs, a new one each time.

    Every object has all its properties and no others, nothing refers to anything, and what no grammar can hold a
    model to (defaults, bounds, formats, titles) is left out.
    """
    schema: dict[str, Any] = json.loads(_strict_text(reply_type))
    return schema


@cache
def _strict_text(reply_type: type[BaseModel]) -> str:
    schema = reply_type.model_json_schema()
    return json.dumps(_strict(schema, schema.get("$defs", {}), ()))


def _strict(schema: Mapping[str, Any], definitions: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema in the subset; `within` are the definitions that it is part of."""
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
        raise TypeError(f"{name!r} holds itself: replies may not")
    return _strict(definitions[name], definitions, (*within, name)) | _described(schema)


def _items(schema: Mapping[str, Any], definitions: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
    """Return what the items of an array are; those of a tuple of fixed length are any of its kinds."""
    if "prefixItems" not in schema:
        return _strict(schema.get("items", {}), definitions, within)
    kinds: list[dict[str, Any]] = []
    for part in schema["prefixItems"]:
        kind = _strict(part, definitions, within)
        if kind not in kinds:
            kinds.append(kind)
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _described(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a field's description; those of objects are their docstrings, written for readers of the code."""
    said = schema.get("description", "")
    return {"description": said} if 0 < len(said) <= _LONGEST else {}
