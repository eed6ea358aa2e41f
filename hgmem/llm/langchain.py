"""The chat of any LangChain chat model: somebody else's model, with their callbacks, tags and settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hgmem.errors import HGMemError, ModelError
from hgmem.llm.chat import Completion, Format, Request, UnavailableError
from hgmem.prompt import Message

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import BaseMessage

ENDPOINT = "langchain:"  # and the class of the model
_LONGEST_SAID = 500  # characters of what an error says
_CUT = {"length", "max_tokens"}
# What errors are called that pass by themselves; every provider has its own classes.
_PASSING = re.compile(
    "Connect|InternalServer|Overloaded|RateLimit|ResourceExhausted|ServiceUnavailable|Throttling|Timeout|TooManyRequests"
)
_SPENT = "insufficient_quota"  # it is called a rate limit, and does not pass


class LangChainChat:
    """The chat of a LangChain chat model. How replies are drawn is said to that model, not here."""

    formats: tuple[Format, ...] = ("text",)

    def __init__(self, model: "BaseChatModel") -> None:
        self._model = model
        kind = type(model).__name__
        given = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
        self.name = next((name for name in given if isinstance(name, str) and name), kind)
        self.endpoint = f"{ENDPOINT}{kind}"

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request; errors as in `Chat.complete`."""
        with self._translating():
            message = self._model.invoke(messages_of(request.messages), config={"run_name": request.task})
        usage: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
        return _completion([_text(message.content)], [usage] if usage else [], cut=_cut(message))

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion, then the completion; errors as in `Chat.complete`."""
        said: list[str] = []
        usages: list[Mapping[str, Any]] = []
        cut = False
        with self._translating():
            for piece in self._model.stream(messages_of(request.messages), config={"run_name": request.task}):
                usage = getattr(piece, "usage_metadata", None)
                usages += [usage] if usage else []
                cut = cut or _cut(piece)
                text = _text(piece.content)
                if text:
                    said.append(text)
                    yield text
        yield _completion(said, usages, cut=cut)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except HGMemError:
            raise
        except Exception as error:
            kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
            said = " ".join(str(error).split())[:_LONGEST_SAID]
            message = f"model {self.name!r} ({self.endpoint}) failed: {type(error).__name__}: {said}".removesuffix(": ")
            if _SPENT not in str(error) and _PASSING.search(kinds):
                raise UnavailableError(f"{message}; try again later") from error
            raise ModelError(f"{message}; check how the LangChain model is set up") from error


def messages_of(messages: Sequence[Message]) -> "list[BaseMessage]":
    """Return a conversation as LangChain has it."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds: Mapping[str, type[AIMessage | HumanMessage | SystemMessage]] = {
        "assistant": AIMessage,
        "system": SystemMessage,
        "user": HumanMessage,
    }
    return [kinds[message.role](content=message.content) for message in messages]


def _text(content: str | Sequence[Any]) -> str:
    """Return a message's text; of blocks, those of text: others think, call tools or show pictures."""
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, dict) else {"type": "text", "text": part} for part in content)
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def _cut(message: "BaseMessage") -> bool:
    told = message.response_metadata
    return any(str(told.get(name)).casefold() in _CUT for name in ("finish_reason", "stop_reason", "done_reason"))


def _completion(said: Sequence[str], usages: Sequence[Mapping[str, Any]], *, cut: bool) -> Completion:
    """Return the completion of pieces; providers split what they count over them."""

    def total(name: str) -> int | None:
        return sum(usage.get(name) or 0 for usage in usages) if usages else None

    return Completion(
        text="".join(said),
        cut=cut,
        prompt_tokens=total("input_tokens"),
        completion_tokens=total("output_tokens"),
        cached_tokens=sum((usage.get("input_token_details") or {}).get("cache_read") or 0 for usage in usages),
    )
