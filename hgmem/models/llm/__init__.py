"""The language-model interface: a typed task in, a validated reply out."""

from typing import Protocol, TypeVar

from hgmem.values.task import Task

Reply = TypeVar("Reply")


class LanguageModel(Protocol):
    """The interface of language models. `name` is stored as `:Memory.model` and returned as `Answer.model`.

    A model that supports streaming also has `stream(task) -> Iterator[str]`, which yields the pieces of the reply's
    text in order. Without it, the text comes in one piece.
    """

    @property
    def name(self) -> str:
        """The model's name."""

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply to `task`, validated as its reply type.

        Raises `ModelError` if there is none.
        """


def close(holder: object) -> None:
    """Close the connections of a model or a chat, if it has `close`. It opens them again when needed."""
    closing = getattr(holder, "close", None)
    if callable(closing):
        closing()
