"""Conversion of LangChain messages to hgmem's, and of completions to LangChain's."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from hgmem.errors import UsageError
from hgmem.models.llm.chat import Completion
from hgmem.models.prompts import Message, Role

_ROLES: Mapping[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def conversation(messages: Iterable[BaseMessage]) -> tuple[Message, ...]:
    """Return the messages as hgmem's.

    Raises `UsageError` for content other than text, and for tool calls.
    """
    return tuple(Message(role=_role(message), content=_text(message)) for message in messages)


def usage_of(completion: Completion) -> UsageMetadata | None:
    """Return the server's token counts, or None if it reports none."""
    if completion.prompt_tokens is None or completion.completion_tokens is None:
        return None
    return UsageMetadata(
        input_tokens=completion.prompt_tokens,
        output_tokens=completion.completion_tokens,
        total_tokens=completion.prompt_tokens + completion.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=completion.cached_tokens),
    )


def response_of(completion: Completion, model: str) -> dict[str, Any]:
    """Return the response metadata of a completion."""
    return {"model_name": model, "finish_reason": "length" if completion.cut else "stop"}


def until(pieces: Iterable[str | Completion], stops: Sequence[str]) -> Iterator[str | Completion]:
    """Yield the pieces before the first stop sequence, then the completion if no stop sequence occurs.

    Text that may begin a stop sequence is held back until this is decided.
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
    """Return the position of the first complete stop sequence."""
    return min((at for at in (text.find(stop) for stop in stops) if at >= 0), default=None)


def _may_begin(text: str, stops: Sequence[str], *, before: int) -> bool:
    """Return whether a stop sequence may begin in the text before position `before`."""
    return any(stop.startswith(text[at:]) for at in range(before) for stop in stops)


def _role(message: BaseMessage) -> Role:
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        raise UsageError(
            "this chat model does not support tool calls: send messages with text only, or use another model"
        )
    match message:
        case SystemMessage():
            return "system"
        case HumanMessage():
            return "user"
        case AIMessage():
            return "assistant"
        case ChatMessage() if message.role == "system" or message.role in _ROLES:
            return _ROLES.get(message.role, "system")
    raise UsageError(f"message type {message.type!r} is not supported: use system, human and ai messages")


def _text(message: BaseMessage) -> str:
    parts = [message.content] if isinstance(message.content, str) else message.content
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") == "text":
            texts.append(str(part.get("text", "")))
        else:
            raise UsageError(f"content part of type {part.get('type')!r} is not supported: use text only")
    return "".join(texts)
