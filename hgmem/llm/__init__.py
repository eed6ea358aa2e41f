"""The language-model seam: one typed task in, one validated reply out."""

from typing import Protocol, TypeVar

from hgmem.model import Task

Reply = TypeVar("Reply")


class LanguageModel(Protocol):
    """Whatever answers tasks. `name` is written to `:Memory.model` and shown as `Answer.model`."""

    @property
    def name(self) -> str:
        """The model's name."""

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply to `task`, validated as its reply type; `ModelError` where there is none."""
