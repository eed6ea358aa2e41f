"""Tasks: typed requests to a language model, with prompt and reply type."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)


class Task(Protocol[Reply_co]):
    """A request to a language model: a frozen dataclass of typed fields with a prompt and a reply type.

    A task may also have `extractive(vectors) -> reply`, with which the built-in rule-based model answers it, and
    `narrowed(schema) -> schema`, which restricts the JSON Schema of the reply type to what its prompt asks for.
    """

    @property
    def name(self) -> str:
        """The task's name in usage and notes."""

    @property
    def prompt_file(self) -> Path:
        """The Markdown file of the prompt, beside the task's module."""

    @property
    def reply_type(self) -> type[Reply_co]:
        """The pydantic model that validates every reply."""

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
