"""One model for some tasks, another for the rest."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hgmem.llm import LanguageModel, close
from hgmem.llm.chat import Chat, chat_below
from hgmem.model import Task

Reply = TypeVar("Reply")


class RoutedModel:
    """A model that leaves the tasks named in `others` to other models. Its name is that of the usual one."""

    def __init__(self, usual: LanguageModel, others: Mapping[str, LanguageModel]) -> None:
        self._usual = usual
        self._others = dict(others)

    @property
    def name(self) -> str:
        """The usual model's name."""
        return self._usual.name

    @property
    def chat(self) -> Chat | None:
        """The chat below the usual model, if there is one."""
        return chat_below(self._usual)

    def serving(self, task: str) -> LanguageModel:
        """Return the model that tasks of this name are for."""
        return self._others.get(task, self._usual)

    def close(self) -> None:
        """Let go of what the models hold open."""
        for model in (self._usual, *self._others.values()):
            close(model)

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply of the model that the task is for."""
        return self.serving(task.name).reply(task)

    def stream(self, task: Task[Any], /) -> Iterator[str]:
        """Yield the pieces of the text that the model writes which the task is for."""
        model: Any = self.serving(task.name)
        if hasattr(model, "stream"):
            yield from model.stream(task)
        else:
            yield model.reply(task).text
