"""Reply formats: which JSON format a server supports, determined once and cached."""

import json
import threading
from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any

from pydantic import BaseModel

from hgmem.errors import BudgetError
from hgmem.models.cache_file import Store
from hgmem.models.llm.chat import Chat, Completion, Format, FormatRefusedError, Request, Sampling
from hgmem.models.llm.reply_parsing import without_thinking
from hgmem.models.prompts import Message
from hgmem.values.task import Task

_QUESTION = Message(role="user", content='Are you ready? Reply with the JSON object {"ready": true} and nothing else.')
_SAMPLING = Sampling(temperature=None, max_tokens=256)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
_LONGEST = 200  # characters of a description
_KEPT = ("type", "enum")


class Ladder:
    """The formats of one chat, best first, and the one in use. Safe between threads."""

    def __init__(self, chat: Chat, store: Store | None) -> None:
        self._chat = chat
        self._store = store
        self._key = f"format {chat.endpoint} {chat.name}"
        self._format: Format | None = None
        self._failed: Exception | None = None
        self._failures = 0
        self._lock = threading.Lock()

    def best(self) -> Format:
        """Return the best format that the server supports. The first call probes the server."""
        if self._format is None:
            before = self._failures
            with self._lock:
                if self._format is None:
                    # Another thread's probe may have failed meanwhile: all waiting threads share its outcome.
                    if self._failed is not None and self._failures > before:
                        raise copy(self._failed)  # a copy, as an error's memory belongs to one question
                    self._format = self._remembered() or self._probed()
        return self._format

    def step_down(self, refused: Format) -> None:
        """Move one format down from a rejected one, unless another thread did."""
        with self._lock:
            if self._format == refused:
                self._remember(self._below(refused))

    def _probed(self) -> Format:
        try:
            way: Format = self._chat.formats[0]
            while way != "text" and not self._understood(way):
                way = self._below(way)
        except BudgetError:  # concerns one question only
            raise
        except Exception as error:
            self._failures += 1
            self._failed = error
            raise
        return self._remember(way)

    def _understood(self, way: Format) -> bool:
        schema = _SCHEMA if way == "json_schema" else None
        request = Request(task="probe", messages=(_QUESTION,), sampling=_SAMPLING, format=way, schema=schema)
        try:
            return _obeyed(self._chat.complete(request))
        except FormatRefusedError:
            return False

    def _below(self, way: Format) -> Format:
        formats = self._chat.formats
        return formats[min(formats.index(way) + 1, len(formats) - 1)]

    def _remember(self, way: Format) -> Format:
        self._format = way
        if self._store is not None and len(self._chat.formats) > 1:
            self._store.put(self._key, way)
        return way

    def _remembered(self) -> Format | None:
        if self._store is None or len(self._chat.formats) == 1:
            return None
        kept = self._store.get(self._key)
        return next((way for way in self._chat.formats if way == kept), None)


def _obeyed(probe: Completion) -> bool:
    """Whether a probe's reply shows that the server enforced JSON, or shows nothing to the contrary.

    A truncated or empty reply shows nothing: a thinking model may need more tokens than a probe allows.
    """
    visible = without_thinking(probe.text)
    if probe.cut or not visible:
        return True
    try:
        data = json.loads(visible)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "ready" in data


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
        name = schema["$ref"].rpartition("/")[2]
        if name in within:
            raise TypeError(f"{name!r} contains itself: reply types must not be recursive")
        return _strict(definitions[name], definitions, (*within, name)) | _described(schema)
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
