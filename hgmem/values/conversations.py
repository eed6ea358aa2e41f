"""Conversations: messages as they come in, and the places of their words in a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Message:
    """What one person says at one time.

    `time` is a datetime, a text in ISO 8601 or unknown. `id` is the caller's, unique in the conversation: without one,
    it is the message's number there, from 1. What is on a picture belongs into the text.
    """

    speaker: str
    text: str
    time: datetime | str | None = None
    id: str | None = None
    metadata: Mapping[str, str | int | float | bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages in the order in which they were said. Its `id` identifies the conversation across runs."""

    id: str
    messages: Sequence[Message] = ()
    title: str = ""
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlace:
    """Where the words of a message stand in the text of a document or chunk: `text[start:end]`.

    `time` is in ISO 8601, or empty. A long message stands in several chunks, in each with what it has of its words.
    """

    id: str
    speaker: str
    time: str
    start: int
    end: int
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)
