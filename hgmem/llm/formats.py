"""Formats: which way of asking for JSON a server understands, found out once and remembered."""

import json
import threading
from collections.abc import Mapping
from copy import copy
from typing import Any, Protocol

from hgmem.errors import BudgetError
from hgmem.llm.chat import Chat, Completion, Format, FormatRefusedError, Request, Sampling
from hgmem.llm.thinking import without_thinking
from hgmem.prompt import Message

_QUESTION = Message(role="user", content='Are you ready? Reply with the JSON object {"ready": true} and nothing else.')
_SAMPLING = Sampling(temperature=None, max_tokens=256)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


class Formats(Protocol):
    """Where the formats that servers understand are kept between processes."""

    def get(self, key: str, /) -> str | None:
        """Return what was put under a key; None where nothing was."""

    def put(self, key: str, text: str, /) -> None:
        """Keep a text under a key."""


class Ladder:
    """The formats of one chat, best first, and the one that it stands on. Safe between threads."""

    def __init__(self, chat: Chat, store: Formats | None) -> None:
        self._chat = chat
        self._store = store
        self._key = f"format {chat.endpoint} {chat.name}"
        self._format: Format | None = None
        self._failed: Exception | None = None
        self._failures = 0
        self._lock = threading.Lock()

    def best(self) -> Format:
        """Return the best format that the server understands; the first time, it is asked."""
        if self._format is None:
            before = self._failures
            with self._lock:
                if self._format is None:
                    self._share_failure(before)
                    self._format = self._remembered() or self._probed()
        return self._format

    def step_down(self, refused: Format) -> None:
        """Go one format down from a refused one, unless another thread did."""
        with self._lock:
            if self._format == refused:
                self._remember(self._below(refused))

    def _share_failure(self, before: int) -> None:
        """Raise what a probe met that another thread made in the meantime: all who waited share its outcome."""
        if self._failed is not None and self._failures > before:
            raise copy(self._failed)  # what an error is told of one memory is not for another's

    def _probed(self) -> Format:
        try:
            way: Format = self._chat.formats[0]
            while way != "text" and not self._understood(way):
                way = self._below(way)
        except BudgetError:  # of one question alone
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
    """Whether a probe's reply shows that the server held the model to JSON, or doesn't show the contrary.

    A model that thinks may need more tokens than a probe has: a reply that is cut or empty shows nothing.
    """
    said = without_thinking(probe.text)
    if probe.cut or not said:
        return True
    try:
        data = json.loads(said)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "ready" in data
