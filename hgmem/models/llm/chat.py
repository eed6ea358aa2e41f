"""The chat interface below the language model: one request sent, one completion returned, for any server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from hgmem.errors import ModelError
from hgmem.models.prompts import Message

Format: TypeAlias = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters. `None` leaves a value to the server.

    The defaults 0.8 and 2,048 are those of the HGMem paper (section 4.2).
    """

    temperature: float | None = 0.8
    top_p: float | None = None
    max_tokens: int = 2048  # per reply
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `task` is the name of its task, `schema` the reply's JSON Schema, if the format uses it."""

    task: str
    messages: tuple[Message, ...]
    sampling: Sampling
    format: Format = "text"
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One completion. `cut` tells that the token limit ended it. Tokens are None if the server reports none."""

    text: str
    cut: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0


class FormatRefusedError(ModelError):
    """The server does not support the requested format. A lower one may work."""


class UnavailableError(ModelError):
    """The server did not answer or asked for a retry, `retry_after` seconds from now if it named a time."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, retryable=True)
        self.retry_after = retry_after


class Chat(Protocol):
    """The interface of chats, which translate errors. They neither retry nor count requests."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def endpoint(self) -> str:
        """The server's address. Facts about the server are cached by endpoint and name."""

    @property
    def formats(self) -> tuple[Format, ...]:
        """The supported reply formats, best first. The last one is `text`."""

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request.

        Raises `UnavailableError` for temporary failures, `FormatRefusedError` for an unsupported format, `ModelError`
        otherwise.
        """

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion as they arrive, then the completion. Raises like `complete`."""


def text_of(content: object) -> str:
    """Return the text of a message. Of content in parts, thinking among them, only the texts count."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    found: list[Mapping[str, Any]] = []
    for part in content:
        as_text = {"type": "text", "text": part} if isinstance(part, str) else getattr(part, "__dict__", {})
        found.append(part if isinstance(part, Mapping) else as_text)
    return "".join(str(part.get("text") or "") for part in found if part.get("type") == "text")


def chat_below(model: object) -> Chat | None:
    """Return the chat of a language model, or None if it has none."""
    found: Chat | None = getattr(model, "chat", None)
    return found if found is not None and hasattr(found, "complete") else None
