"""The chat of a LangChain chat model, which keeps its own callbacks, tags and settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hgmem.errors import HGMemError, ModelError
from hgmem.models.llm.chat import Completion, Format, Request, UnavailableError, text_of
from hgmem.models.prompts import Message

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import BaseMessage

ENDPOINT = "langchain:"  # followed by the model's class
_LONGEST_MESSAGE = 500  # characters of an error's text
_CUT = {"length", "max_tokens"}
# Class names of temporary errors: every provider has its own classes.
_PASSING = re.compile(
    "Connect|InternalServer|Overloaded|RateLimit|ResourceExhausted|ServiceUnavailable|Throttling|Timeout|TooManyRequests"
)
_SPENT = "insufficient_quota"  # reported as a rate limit, but permanent


class LangChainChat:
    """The chat of a LangChain chat model. Sampling is configured on that model, not here."""

    formats: tuple[Format, ...] = ("text",)

    def __init__(self, model: "BaseChatModel") -> None:
        self._model = model
        kind = type(model).__name__
        given = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
        self.name = next((name for name in given if isinstance(name, str) and name), kind)
        self.endpoint = f"{ENDPOINT}{kind}"

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request. Raises like `Chat.complete`."""
        with self._translating():
            message = self._model.invoke(messages_of(request.messages), config={"run_name": request.task})
        return _completion([message])

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion, then the completion. Raises like `Chat.complete`."""
        pieces: list[BaseMessage] = []
        with self._translating():
            for piece in self._model.stream(messages_of(request.messages), config={"run_name": request.task}):
                pieces.append(piece)
                if text := text_of(piece.content):
                    yield text
        yield _completion(pieces)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except HGMemError:
            raise
        except Exception as error:
            kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
            reason = " ".join(str(error).split())[:_LONGEST_MESSAGE]
            cause = f"{type(error).__name__}: {reason}".removesuffix(": ")
            message = f"model {self.name!r} ({self.endpoint}) failed: {cause}"
            if _SPENT not in str(error) and _PASSING.search(kinds):
                raise UnavailableError(f"{message}; try again later") from error
            raise ModelError(f"{message}; check the configuration of the LangChain model") from error


def messages_of(messages: Sequence[Message]) -> "list[BaseMessage]":
    """Return messages in LangChain's form."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds: Mapping[str, type[AIMessage | HumanMessage | SystemMessage]] = {
        "assistant": AIMessage,
        "system": SystemMessage,
        "user": HumanMessage,
    }
    return [kinds[message.role](content=message.content) for message in messages]


def _cut(message: "BaseMessage") -> bool:
    metadata = message.response_metadata
    return any(str(metadata.get(name)).casefold() in _CUT for name in ("finish_reason", "stop_reason", "done_reason"))


def _completion(messages: "Sequence[BaseMessage]") -> Completion:
    """Return the completion of a message or its pieces. Providers spread token counts over them."""
    given = [getattr(message, "usage_metadata", None) for message in messages]
    usages: list[Mapping[str, Any]] = [usage for usage in given if usage]

    def total(name: str) -> int | None:
        return sum(usage.get(name) or 0 for usage in usages) if usages else None

    return Completion(
        text="".join(text_of(message.content) for message in messages),
        cut=any(map(_cut, messages)),
        prompt_tokens=total("input_tokens"),
        completion_tokens=total("output_tokens"),
        cached_tokens=sum((usage.get("input_token_details") or {}).get("cache_read") or 0 for usage in usages),
    )
