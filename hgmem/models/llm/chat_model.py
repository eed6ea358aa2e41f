"""The language model over a chat: sends a task's prompt and parses the reply."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TypeVar, cast

from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.models.cache_file import Store
from hgmem.models.llm import close
from hgmem.models.llm.chat import Chat, Completion, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.models.llm.reply_parsing import UnreadableError, Visible, parse_reply, starts_inside, without_thinking
from hgmem.models.llm.response_formats import Ladder, schema_of
from hgmem.models.prompts import Message, prompt_of
from hgmem.models.reply import Reply, TextReply
from hgmem.values.task import Task

ReplyT = TypeVar("ReplyT")

_SAMPLING = Sampling()
_LONGEST_QUOTED = 4000  # characters of a bad reply that the retry quotes


class ChatModel:
    """A language model that answers tasks over `chat`, with sampling parameters by task in `per_task`.

    A truncated or unreadable reply is requested once more. The format that the server supports is determined at the
    first structured task and cached in `store`.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        sampling: Sampling = _SAMPLING,
        per_task: Mapping[str, Sampling] | None = None,
        store: Store | None = None,
    ) -> None:
        self.name, self.chat = chat.name, chat
        self._sampling = sampling
        self._per_task = dict(per_task or {})
        self._ladder = Ladder(chat, store)
        self._starts_inside = False  # whether replies began inside an untagged thinking block

    def close(self) -> None:
        """Close the chat's connections."""
        close(self.chat)

    def reply(self, task: Task[ReplyT], /) -> ReplyT:
        """Return the reply to `task`.

        Raises `BadReplyError` if the reply is unusable twice.
        """
        asked = cast("Task[Reply]", task)
        request = self._request(asked)
        first = self._complete(asked, request)
        if first.cut:
            most = request.sampling.max_tokens
            problem = f"the reply was truncated at {most:,} tokens"
            longer = replace(request, sampling=replace(request.sampling, max_tokens=2 * most))
            try:
                return cast("ReplyT", self._again(asked, longer).noted([f"asked again: {problem}"]))
            except (AccessError, BadReplyError, BudgetError, UnavailableError):
                raise
            except ModelError as error:  # such as a bad reply that exceeds the context window when quoted
                raise self._cut(request, first.text) from error
        try:
            return cast("ReplyT", parse_reply(asked.reply_type, first.text))
        except UnreadableError as error:
            problem = str(error)
            request = replace(request, messages=_corrected(request.messages, first.text, problem))
        return cast("ReplyT", self._again(asked, request).noted([f"asked again: {problem}"]))

    def stream(self, task: Task[ReplyT], /) -> Iterator[str]:
        """Yield the text of a `TextReply` as it is written, without thinking.

        Raises `BadReplyError` if it ends truncated or empty.
        """
        if not issubclass(task.reply_type, TextReply):
            raise TypeError(f"task {task.name!r} returns {task.reply_type.__name__}, not text: it cannot be streamed")
        return self._streamed(self._request(cast("Task[Reply]", task)))

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
        return Request(task=task.name, messages=messages, sampling=self._per_task.get(task.name, self._sampling))

    def _again(self, task: Task[Reply], request: Request) -> Reply:
        second = self._complete(task, request)
        if second.cut:
            raise self._cut(request, second.text)
        try:
            return parse_reply(task.reply_type, second.text)
        except UnreadableError as error:
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

    def _streamed(self, request: Request) -> Iterator[str]:
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
        return BadReplyError(
            f"the reply of {self.name!r} to task {request.task!r} was truncated at "
            f"{request.sampling.max_tokens:,} tokens: set HGMEM_MAX_TOKENS higher",
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
