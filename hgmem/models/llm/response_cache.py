"""The response cache: replies to identical tasks, stored between runs."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from hgmem.models.cache_file import Store
from hgmem.models.llm.chat_model import ChatModel
from hgmem.models.metering import took
from hgmem.models.reply import TextReply
from hgmem.values.task import Task

Reply = TypeVar("Reply")


class CachedModel:
    """A model with a response cache for the tasks named in `tasks`.

    Errors, empty replies, unfinished streams and notes are not stored. Concurrent identical tasks may all call the
    model.
    """

    def __init__(self, model: ChatModel, store: Store, *, tasks: frozenset[str]) -> None:
        self.name, self.chat = model.name, model.chat
        self._model = model
        self._store = store
        self._tasks = tasks

    def close(self) -> None:
        """Close the cache file and the model's connections."""
        self._store.close()
        self._model.close()

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the cached reply to `task`, else the model's."""
        if task.name not in self._tasks:
            return self._model.reply(task)
        key = self._model.key(task)
        stored = self._stored(task, key)
        if stored is not None:
            return stored
        reply = self._model.reply(task)
        if isinstance(reply, BaseModel) and any(value for _, value in reply):  # an empty reply may be a failure
            self._keep(key, reply)
        return reply

    def stream(self, task: Task[Any], /) -> Iterator[str]:
        """Yield the cached text in one piece, else the model's pieces."""
        if task.name not in self._tasks or not issubclass(task.reply_type, TextReply):
            yield from self._model.stream(task)
            return
        key = self._model.key(task)
        stored = self._stored(task, key)
        if stored is not None:
            yield stored.text
            return
        pieces = []
        for piece in self._model.stream(task):
            pieces.append(piece)
            yield piece
        with suppress(ValidationError):
            self._keep(key, task.reply_type(text="".join(pieces)))

    def _keep(self, key: str, reply: BaseModel) -> None:
        with suppress(PydanticSerializationError):  # an unpaired surrogate has no UTF-8
            self._store.put(key, reply.model_dump_json())

    def _stored(self, task: Task[Reply], key: str) -> Reply | None:
        began = time.perf_counter()
        text = self._store.get(key)
        reply_type = task.reply_type
        if text is None or not issubclass(reply_type, BaseModel):
            return None
        try:
            reply = reply_type.model_validate_json(text)
        except ValidationError:  # stored by a version with other reply types
            return None
        took("cache", task.name, time.perf_counter() - began)
        return reply
