"""The language-model seam: one typed task in, one validated reply out."""

from typing import Protocol, TypeVar

from hgmem.model import Task

Reply = TypeVar("Reply")


class LanguageModel(Protocol):
    """Whatever answers tasks. `name` is written to `:Memory.model` and shown as `Answer.model`.

    One that can show a text while it is being written has also `stream(task) -> Iterator[str]`: the pieces of the
    reply's text, in order. Where it is missing, a text comes as one piece.
    """

    @property
    def name(self) -> str:
        """The model's name."""

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply to `task`, validated as its reply type; `ModelError` where there is none."""


def close(holder: object) -> None:
    """Let a model, or what it asks, close what it holds open, if it can; it opens it again where it is asked again."""
    closing = getattr(holder, "close", None)
    if callable(closing):
        closing()
