"""The schemas for servers are in the subset of JSON Schema that strict structured outputs accept."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from hgmem.models.llm.response_formats import json_schema
from hgmem.models.reply import Reply

TAKEN = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description"}


class Concern(BaseModel):
    """What is still wanted, said for readers of the code."""

    text: str
    points: tuple[int, ...] = ()


class Planning(Reply):
    """The judgement."""

    judgement: Literal["sufficient", "local", "global"]
    kind: Literal["plan"] = "plan"
    concerns: tuple[Concern, ...] = ()
    first: Concern | None = None
    weight: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False, description="from 0 to 10")] = 1.0
    title: Annotated[str, Field(pattern="^a", max_length=3, description="x" * 1000)] = "a"
    pair: tuple[int, str] = (1, "a")
    several: list[list[str]] = Field(default_factory=list)


class Ring(Reply):
    inner: tuple["Ring", ...] = ()


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas within it."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from parts(inner)
    if "items" in schema:
        yield from parts(schema["items"])


def test_a_schema_says_nothing_that_strict_servers_refuse() -> None:
    found = list(parts(json_schema(Planning)))
    assert len(found) > 10
    for schema in found:
        assert schema.keys() <= TAKEN
        assert "type" in schema or "anyOf" in schema
    assert "$ref" not in json.dumps(found)


def test_every_object_has_all_its_properties_and_no_others() -> None:
    objects = [schema for schema in parts(json_schema(Planning)) if schema.get("type") == "object"]
    assert len(objects) == 3
    for schema in objects:
        assert schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False


def test_a_schema_keeps_what_the_reply_is_about() -> None:
    concern = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "points": {"type": "array", "items": {"type": "integer"}}},
        "required": ["text", "points"],
        "additionalProperties": False,
    }
    assert json_schema(Planning)["properties"] == {
        "judgement": {"type": "string", "enum": ["sufficient", "local", "global"]},
        "kind": {"type": "string", "enum": ["plan"]},
        "concerns": {"type": "array", "items": concern},
        "first": {"anyOf": [concern, {"type": "null"}]},
        "weight": {"type": "number", "description": "from 0 to 10"},
        "title": {"type": "string"},
        "pair": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
        "several": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    }


def test_whoever_changes_a_schema_changes_their_own() -> None:
    json_schema(Planning).clear()
    assert json_schema(Planning)


def test_a_reply_that_holds_itself_is_refused() -> None:
    with pytest.raises(TypeError, match="'Ring' contains itself"):
        json_schema(Ring)
