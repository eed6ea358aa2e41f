"""The wire below the language-model seam: one conversation sent, one completion back, whoever the server is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from hgmem.errors import ModelError
from hgmem.prompt import Message

Format: TypeAlias = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How replies are drawn. `None` leaves a value to the server; 0.8 and 2,048 are the paper's (section 4.1)."""

    temperature: float | None = 0.8
    top_p: float | None = None
    max_tokens: int = 2048  # of one reply
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent; `task` names what it is for, `schema` is the JSON Schema of the reply where the format is it."""

    task: str
    messages: tuple[Message, ...]
    sampling: Sampling
    format: Format = "text"
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back; `cut` says that the token limit ended it. Tokens are None where the server counts none."""

    text: str
    cut: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0


class FormatRefusedError(ModelError):
    """The server does not know the format that was asked for: the next one may do."""


class UnavailableError(ModelError):
    """Nobody answered, or the server asked to come back later, `retry_after` seconds from now if it said when."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, retryable=True)
        self.retry_after = retry_after


class Chat(Protocol):
    """A way to a chat model. It translates what goes wrong, once; it neither repeats nor counts anything."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def endpoint(self) -> str:
        """Where the model is: what is learnt about it is remembered for endpoint and name."""

    @property
    def formats(self) -> tuple[Format, ...]:
        """What it can be asked for, best first; the last one is `text`."""

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request.

        `UnavailableError` for what may pass, `FormatRefusedError` for a format that the server doesn't know,
        `ModelError` for the rest.
        """

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion as they come, then the completion; errors as in `complete`."""


def chat_below(model: object) -> Chat | None:
    """Return the chat that a language model sends its conversations by; None for one that has none."""
    found: Chat | None = getattr(model, "chat", None)
    return found if found is not None and hasattr(found, "complete") else None
