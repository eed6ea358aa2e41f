"""Replies kept between runs: what was asked before, word for word, is not asked again."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from hgmem.llm import LanguageModel, close
from hgmem.llm.chat import Chat, chat_below
from hgmem.llm.store import Store
from hgmem.meter import took
from hgmem.model import Task
from hgmem.reply import TextReply

Reply = TypeVar("Reply")


class KeyedModel(LanguageModel, Protocol):
    """A language model that can tell one question from another."""

    def key(self, task: Task[Any], /) -> str:
        """Return what stands for everything that the reply depends on: endpoint, model, prompt, sampling, fields."""


class CachedModel:
    """A model whose replies to the tasks named in `tasks` are stored. It has `stream` where `model` has it.

    Errors are not stored, nor replies that say nothing, nor a text that nobody heard to its end, nor a reply's notes.
    Threads that ask the same at the same time may all ask.
    """

    stream: Callable[[Task[Any]], Iterator[str]]

    def __init__(self, model: KeyedModel, store: Store, *, tasks: frozenset[str]) -> None:
        self._model = model
        self._store = store
        self._tasks = tasks
        if hasattr(model, "stream"):
            self.stream = self._stream

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def chat(self) -> Chat | None:
        """The chat below the model, if there is one."""
        return chat_below(self._model)

    def key(self, task: Task[Any], /) -> str:
        """Return the model's key of a task."""
        return self._model.key(task)

    def close(self) -> None:
        """Let go of the stored replies, and of what the model holds open."""
        self._store.close()
        close(self._model)

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the stored reply to `task`, else the model's."""
        if task.name not in self._tasks:
            return self._model.reply(task)
        key = self._model.key(task)
        stored = self._stored(task, key)
        if stored is not None:
            return stored
        reply = self._model.reply(task)
        if isinstance(reply, BaseModel) and any(value for _, value in reply):  # nothing at all may be a failure
            self._keep(key, reply)
        return reply

    def _stream(self, task: Task[Any], /) -> Iterator[str]:
        """Yield the stored text in one piece, else the model's pieces."""
        model: Any = self._model
        if task.name not in self._tasks or not issubclass(task.reply_type, TextReply):
            yield from model.stream(task)
            return
        key = self._model.key(task)
        stored = self._stored(task, key)
        if stored is not None:
            yield stored.text
            return
        pieces = []
        for piece in model.stream(task):
            pieces.append(piece)
            yield piece
        with suppress(ValidationError):
            self._keep(key, task.reply_type(text="".join(pieces)))

    def _keep(self, key: str, reply: BaseModel) -> None:
        with suppress(PydanticSerializationError):  # half a character, which is no UTF-8
            self._store.put(key, reply.model_dump_json())

    def _stored(self, task: Task[Reply], key: str) -> Reply | None:
        began = time.perf_counter()
        text = self._store.get(key)
        reply_type = task.reply_type
        if text is None or not issubclass(reply_type, BaseModel):
            return None
        try:
            reply = reply_type.model_validate_json(text)
        except ValidationError:  # of a version whose replies were others
            return None
        took("cache", task.name, time.perf_counter() - began)
        return reply
