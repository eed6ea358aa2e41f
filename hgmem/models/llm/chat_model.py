"""The language model over a chat: sends a task's prompt, parses the reply, and keeps those of some tasks."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import asdict, replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.models.cache_file import Store
from hgmem.models.llm import close
from hgmem.models.llm.chat import Chat, Completion, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.models.llm.reply_parsing import UnreadableError, Visible, parse_reply, starts_inside, without_thinking
from hgmem.models.llm.response_formats import Ladder, schema_of
from hgmem.models.metering import took
from hgmem.models.prompts import Message, prompt_of
from hgmem.models.reply import Reply, TextReply
from hgmem.values.task import Task

ReplyT = TypeVar("ReplyT")

_SAMPLING = Sampling()
_LONGEST_QUOTED = 4000  # characters of a bad reply that the retry quotes


class ChatModel:
    """A language model that answers tasks over `chat`, with sampling parameters of some tasks in `per_task`.

    A truncated or unreadable reply is requested once more. The format that the server supports is determined at the
    first structured task and cached in `store`, and so are replies to the `cached` tasks: not errors, empty replies,
    unfinished streams and notes. Concurrent identical tasks may all call the chat.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        sampling: Sampling = _SAMPLING,
        per_task: Mapping[str, Mapping[str, Any]] | None = None,
        store: Store | None = None,
        cached: frozenset[str] = frozenset(),
    ) -> None:
        self.name, self.chat = chat.name, chat
        self._sampling = sampling
        self._per_task = dict(per_task or {})
        self._store = store
        self._cached = cached
        self._ladder = Ladder(chat, store)
        self._limited: frozenset[str] = frozenset()  # tasks whose truncated replies count
        self._starts_inside = False  # whether replies began inside an untagged thinking block

    def sampled(self, wanted: Mapping[str, Mapping[str, Any]]) -> "ChatModel":
        """Return this model with the sampling parameters by task that a recipe asks for. Those of settings win.

        A reply that reaches a limit of tokens of a recipe counts as far as it goes.
        """
        changed = copy(self)
        own = self._per_task
        changed._per_task = {**own, **{task: {**asked, **own.get(task, {})} for task, asked in wanted.items()}}
        limited = (task for task, asked in wanted.items() if "max_tokens" in asked.keys() - own.get(task, {}).keys())
        changed._limited = frozenset(limited)
        return changed

    def close(self) -> None:
        """Close the chat's connections and the cache file."""
        close(self.chat)
        close(self._store)

    def reply(self, task: Task[ReplyT], /) -> ReplyT:
        """Return the cached reply to `task`, else the chat's.

        Raises `BadReplyError` if the reply is unusable twice.
        """
        stored = self._stored(task)
        if stored is not None:
            return stored
        reply = self._replied(cast("Task[Reply]", task))
        self._keep(task, reply)
        return cast("ReplyT", reply)

    def _replied(self, asked: Task[Reply]) -> Reply:
        request = self._request(asked)
        first = self._complete(asked, request)
        if first.cut and asked.name not in self._limited:
            most = request.sampling.max_tokens
            problem = f"the reply was truncated at {most:,} tokens"
            longer = replace(request, sampling=replace(request.sampling, max_tokens=2 * most))
            try:
                return self._again(asked, longer).noted([f"asked again: {problem}"])
            except (AccessError, BadReplyError, BudgetError, UnavailableError):
                raise
            except ModelError as error:  # such as a bad reply that exceeds the context window when quoted
                raise self._cut(request, first.text) from error
        try:
            return parse_reply(asked.reply_type, first.text)
        except UnreadableError as error:
            problem = str(error)
            request = replace(request, messages=_corrected(request.messages, first.text, problem))
        return self._again(asked, request).noted([f"asked again: {problem}"])

    def stream(self, task: Task[ReplyT], /) -> Iterator[str]:
        """Yield the text of a `TextReply` as it is written, without thinking, or whole if it is cached.

        Raises `BadReplyError` if it ends truncated or empty.
        """
        if not issubclass(task.reply_type, TextReply):
            raise TypeError(f"task {task.name!r} returns {task.reply_type.__name__}, not text: it cannot be streamed")
        return self._streamed(task)

    def _streamed(self, task: Task[Any]) -> Iterator[str]:
        stored = self._stored(task)
        if stored is not None:
            yield stored.text
            return
        pieces = []
        for piece in self._spoken(task):
            pieces.append(piece)
            yield piece
        with suppress(ValidationError):
            self._keep(task, task.reply_type(text="".join(pieces)))

    def _stored(self, task: Task[ReplyT]) -> ReplyT | None:
        reply_type = task.reply_type
        if not self._store or task.name not in self._cached or not issubclass(reply_type, BaseModel):
            return None
        began = time.perf_counter()
        text = self._store.get(self.key(task))
        try:
            reply = None if text is None else reply_type.model_validate_json(text)
        except ValidationError:  # stored by a version with other reply types
            return None
        if reply is not None:
            took("cache", task.name, time.perf_counter() - began)
        return reply

    def _keep(self, task: Task[Any], reply: Reply) -> None:
        # An empty reply may be a failure.
        if self._store and task.name in self._cached and any(value for _, value in reply):
            with suppress(PydanticSerializationError):  # an unpaired surrogate has no UTF-8
                self._store.put(self.key(task), reply.model_dump_json())

    def key(self, task: Task[ReplyT], /) -> str:
        """Return the cache key of a task, which is stable across processes and machines."""
        asked = cast("Task[Reply]", task)
        schema = "text" if issubclass(asked.reply_type, TextReply) else schema_of(asked)
        parts = [
            self.chat.endpoint,
            self.name,
            task.name,
            prompt_of(task).version,
            asdict(self._request(asked).sampling),
            schema,
            dict(task.fields()),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _request(self, task: Task[Reply]) -> Request:
        """Return the request of a task, as yet without a format."""
        messages = prompt_of(task).filled(task.fields())
        sampling = replace(self._sampling, **self._per_task.get(task.name, {}))
        return Request(task=task.name, messages=messages, sampling=sampling)

    def _again(self, task: Task[Reply], request: Request) -> Reply:
        second = self._complete(task, request)
        if second.cut and task.name not in self._limited:
            raise self._cut(request, second.text)
        try:
            return parse_reply(task.reply_type, second.text)
        except UnreadableError as error:
            if second.cut:
                raise self._cut(request, second.text) from error
            message = f"{self.name!r} returned no usable reply to task {task.name!r} in two attempts: {error}"
            raise BadReplyError(message, task=task.name, text=second.text) from error

    def _complete(self, task: Task[Reply], request: Request) -> Completion:
        while True:
            way = "text" if issubclass(task.reply_type, TextReply) else self._ladder.best()
            schema = schema_of(task) if way == "json_schema" else None
            try:
                completion = self.chat.complete(replace(request, format=way, schema=schema))
            except FormatRefusedError:
                if way == "text":
                    raise
                self._ladder.step_down(way)
                continue
            self._starts_inside = self._starts_inside or starts_inside(completion.text)
            return completion

    def _spoken(self, task: Task[Any]) -> Iterator[str]:
        request = self._request(task)
        visible = Visible(inside=self._starts_inside)
        written: list[str] = []
        heard: list[str] = []
        cut = False
        pieces = self.chat.stream(request)
        try:
            for piece in pieces:
                if isinstance(piece, Completion):
                    cut = piece.cut
                    continue
                heard.append(piece)
                written.append(visible.feed(piece))
                if written[-1]:
                    yield written[-1]
        finally:  # a reader that stops closes the connection
            close(pieces)
        written.append(visible.end())
        if written[-1]:
            yield written[-1]
        self._starts_inside = self._starts_inside or starts_inside("".join(heard))
        text, name = "".join(written), request.task
        if cut:
            raise self._cut(request, text)
        if not text.strip():
            raise BadReplyError(f"{self.name!r} returned an empty reply to task {name!r}", task=name)

    def _cut(self, request: Request, text: str) -> BadReplyError:
        limited = f"give the task more max_tokens by HGMEM_SAMPLING (the recipe limits {request.task!r})"
        remedy = limited if request.task in self._limited else "set HGMEM_MAX_TOKENS higher"
        return BadReplyError(
            f"the reply of {self.name!r} to task {request.task!r} was truncated at "
            f"{request.sampling.max_tokens:,} tokens: {remedy}",
            task=request.task,
            text=text,
        )


def _corrected(messages: tuple[Message, ...], text: str, problem: str) -> tuple[Message, ...]:
    """Return the conversation extended by a bad reply and its error.

    Roles alternate and no message is empty, because some servers reject other conversations.
    """
    wish = f"That could not be used: {problem}. Give the whole reply again, as it was asked for, and nothing else."
    reply_text = without_thinking(text)
    if not reply_text:
        *before, last = messages
        return (*before, replace(last, content=f"{last.content}\n\n{wish}"))
    quoted = reply_text if len(reply_text) <= _LONGEST_QUOTED else f"{reply_text[:_LONGEST_QUOTED]}…"
    return (*messages, Message(role="assistant", content=quoted), Message(role="user", content=wish))
