"""The language model over a chat: a task's prompt is sent, and what comes back is read as its reply."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeVar, cast

from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.llm import close
from hgmem.llm.chat import Chat, Completion, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.llm.formats import Formats, Ladder
from hgmem.llm.replies import UnreadableError, read
from hgmem.llm.schema import json_schema
from hgmem.llm.thinking import Visible, starts_inside, without_thinking
from hgmem.model import Task
from hgmem.prompt import Message, prompt
from hgmem.reply import Reply, TextReply

Said = TypeVar("Said")

_SAMPLING = Sampling()
_LONGEST_QUOTED = 4000  # characters of a bad reply that are sent back


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """What is asked for one task: messages so far, and how replies are drawn."""

    task: Task[Reply]
    messages: tuple[Message, ...]
    sampling: Sampling


class ChatModel:
    """A language model that answers tasks over `chat`, each with its own sampling where `per_task` names it.

    A reply that is cut or can't be read is asked for once more. What format the server understands is found out at
    the first task that wants one, and kept in `store`.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        sampling: Sampling = _SAMPLING,
        per_task: Mapping[str, Sampling] | None = None,
        store: Formats | None = None,
    ) -> None:
        self._chat = chat
        self._sampling = sampling
        self._per_task = dict(per_task or {})
        self._ladder = Ladder(chat, store)
        self._starts_inside = False  # whether replies were seen that begin with thinking, without a tag

    @property
    def name(self) -> str:
        """The model's name."""
        return self._chat.name

    @property
    def chat(self) -> Chat:
        """The chat below, with its limits."""
        return self._chat

    def close(self) -> None:
        """Close the chat's connections."""
        close(self._chat)

    def reply(self, task: Task[Said], /) -> Said:
        """Return the reply to `task`; `BadReplyError` where it can't be used when asked again either."""
        asked = self._conversation(task)
        first = self._complete(asked)
        if first.cut:
            problem = f"the reply was cut off at {asked.sampling.max_tokens:,} tokens"
            longer = replace(asked, sampling=replace(asked.sampling, max_tokens=2 * asked.sampling.max_tokens))
            try:
                return cast("Said", self._again(longer).noted([f"asked again: {problem}"]))
            except (AccessError, BadReplyError, BudgetError, UnavailableError):
                raise
            except ModelError as error:  # such as a reply of that length being more than the server takes
                raise self._cut(asked, first.text) from error
        try:
            return cast("Said", read(asked.task.reply_type, first.text))
        except UnreadableError as error:
            problem = str(error)
            asked = replace(asked, messages=_corrected(asked.messages, first.text, problem))
        return cast("Said", self._again(asked).noted([f"asked again: {problem}"]))

    def stream(self, task: Task[Said], /) -> Iterator[str]:
        """Yield the text of a `TextReply` as it is written, without thinking; `BadReplyError` at a cut or empty end."""
        if not issubclass(task.reply_type, TextReply):
            raise TypeError(f"task {task.name!r} asks for {task.reply_type.__name__}, no text: it can't be streamed")
        return self._streamed(self._conversation(task))

    def key(self, task: Task[Said], /) -> str:
        """Return what two askings have in common if any reply to one may do for the other; the same everywhere."""
        asked = self._conversation(task)
        schema = "text" if issubclass(asked.task.reply_type, TextReply) else json_schema(asked.task.reply_type)
        parts = [
            self._chat.endpoint,
            self.name,
            task.name,
            prompt(task.name).version,
            asdict(asked.sampling),
            schema,
            dict(task.fields()),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _conversation(self, task: Task[Said]) -> _Conversation:
        return _Conversation(
            task=cast("Task[Reply]", task),
            messages=prompt(task.name).filled(task.fields()),
            sampling=self._per_task.get(task.name, self._sampling),
        )

    def _again(self, asked: _Conversation) -> Reply:
        second = self._complete(asked)
        if second.cut:
            raise self._cut(asked, second.text)
        try:
            return read(asked.task.reply_type, second.text)
        except UnreadableError as error:
            name = asked.task.name
            message = f"{self.name!r} gave no reply to {name!r} that can be used, asked twice: {error}"
            raise BadReplyError(message, task=name, text=second.text) from error

    def _complete(self, asked: _Conversation) -> Completion:
        while True:
            request = self._request(asked)
            try:
                completion = self._chat.complete(request)
            except FormatRefusedError:
                if request.format == "text":
                    raise
                self._ladder.step_down(request.format)
                continue
            self._starts_inside = self._starts_inside or starts_inside(completion.text)
            return completion

    def _request(self, asked: _Conversation) -> Request:
        kind = asked.task.reply_type
        way = "text" if issubclass(kind, TextReply) else self._ladder.best()
        schema = json_schema(kind) if way == "json_schema" else None
        return Request(
            task=asked.task.name, messages=asked.messages, sampling=asked.sampling, format=way, schema=schema
        )

    def _streamed(self, asked: _Conversation) -> Iterator[str]:
        visible = Visible(inside=self._starts_inside)
        shown: list[str] = []
        heard: list[str] = []
        cut = False
        pieces = self._chat.stream(self._request(asked))
        try:
            for piece in pieces:
                if isinstance(piece, Completion):
                    cut = piece.cut
                    continue
                heard.append(piece)
                shown.append(visible.feed(piece))
                if shown[-1]:
                    yield shown[-1]
        finally:  # whoever stops listening hangs up
            close = getattr(pieces, "close", None)
            if close:
                close()
        shown.append(visible.end())
        if shown[-1]:
            yield shown[-1]
        self._starts_inside = self._starts_inside or starts_inside("".join(heard))
        self._check(asked, "".join(shown), cut=cut)

    def _check(self, asked: _Conversation, text: str, *, cut: bool) -> None:
        """Raise where a streamed text is not all of a reply."""
        if cut:
            raise self._cut(asked, text)
        if not text.strip():
            raise BadReplyError(f"{self.name!r} gave an empty reply to {asked.task.name!r}", task=asked.task.name)

    def _cut(self, asked: _Conversation, text: str) -> BadReplyError:
        return BadReplyError(
            f"the reply of {self.name!r} to {asked.task.name!r} was cut off at {asked.sampling.max_tokens:,} tokens: "
            "set HGMEM_MAX_TOKENS higher",
            task=asked.task.name,
            text=text,
        )


def _corrected(messages: tuple[Message, ...], text: str, problem: str) -> tuple[Message, ...]:
    """Return the conversation with a bad reply and what is wrong with it.

    Nobody says two things in a row, and nobody says nothing: there are servers that refuse such a conversation.
    """
    wish = f"That could not be used: {problem}. Give the whole reply again, as it was asked for, and nothing else."
    said = without_thinking(text)
    if not said:
        *before, last = messages
        return (*before, replace(last, content=f"{last.content}\n\n{wish}"))
    quoted = said if len(said) <= _LONGEST_QUOTED else f"{said[:_LONGEST_QUOTED]}…"
    return (*messages, Message(role="assistant", content=quoted), Message(role="user", content=wish))
