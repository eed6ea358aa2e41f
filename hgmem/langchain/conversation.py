"""LangChain's messages as a conversation of ours, and our completions as LangChain's."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from hgmem.errors import UsageError
from hgmem.llm.chat import Completion
from hgmem.prompt import Message, Role

_ROLES: Mapping[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def conversation(messages: Iterable[BaseMessage]) -> tuple[Message, ...]:
    """Return the messages; `UsageError` for what is no text, and for calls of tools."""
    return tuple(Message(role=_role(message), content=_text(message)) for message in messages)


def usage_of(completion: Completion) -> UsageMetadata | None:
    """Return the tokens that the server counted; None where it counts none."""
    if completion.prompt_tokens is None or completion.completion_tokens is None:
        return None
    return UsageMetadata(
        input_tokens=completion.prompt_tokens,
        output_tokens=completion.completion_tokens,
        total_tokens=completion.prompt_tokens + completion.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=completion.cached_tokens),
    )


def response_of(completion: Completion, model: str) -> dict[str, Any]:
    """Return what is said of a completion beside its text."""
    return {"model_name": model, "finish_reason": "length" if completion.cut else "stop"}


def until(pieces: Iterable[str | Completion], stops: Sequence[str]) -> Iterator[str | Completion]:
    """Yield the pieces before the first of the stops, then the completion, if there is one and no stop.

    What may be the beginning of a stop is held back until it is known not to be one.
    """
    held, most = "", max(map(len, stops), default=0) - 1
    end: Completion | None = None
    for piece in pieces:
        if isinstance(piece, Completion):
            end = piece
            break
        held += piece
        at = _found(held, stops)
        if at is not None and not _may_begin(held, stops, before=at):
            break
        ready = len(held) - most if most > 0 else len(held)
        if ready > 0:
            yield held[:ready]
            held = held[ready:]
    at = _found(held, stops)
    if held[:at]:
        yield held[:at]
    if end is not None and at is None:
        yield end


def _found(text: str, stops: Sequence[str]) -> int | None:
    """Return where the first stop begins that is there as a whole."""
    return min((at for at in (text.find(stop) for stop in stops) if at >= 0), default=None)


def _may_begin(text: str, stops: Sequence[str], *, before: int) -> bool:
    """Return whether the text may end in the beginning of a stop, before that place."""
    return any(stop.startswith(text[at:]) for at in range(before) for stop in stops)


def _role(message: BaseMessage) -> Role:
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        raise UsageError("this chat model calls no tools: give it messages of text alone, or another model")
    match message:
        case SystemMessage():
            return "system"
        case HumanMessage():
            return "user"
        case AIMessage():
            return "assistant"
        case ChatMessage() if message.role == "system" or message.role in _ROLES:
            return _ROLES.get(message.role, "system")
    raise UsageError(f"this chat model takes messages of system, user and assistant, none of type {message.type!r}")


def _text(message: BaseMessage) -> str:
    parts = [message.content] if isinstance(message.content, str) else message.content
    said = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
        elif part.get("type") == "text":
            said.append(str(part.get("text", "")))
        else:
            raise UsageError(f"this chat model takes text, no part of type {part.get('type')!r}: leave it out")
    return "".join(said)
