"""Task routing: one model for some tasks, another for the rest."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hgmem.models.llm import LanguageModel, close
from hgmem.models.llm.chat import Chat, chat_below
from hgmem.values.task import Task

Reply = TypeVar("Reply")


class RoutedModel:
    """A model that delegates the tasks named in `others` to other models. Its name is the usual model's."""

    def __init__(self, usual: LanguageModel, others: Mapping[str, LanguageModel]) -> None:
        self._usual = usual
        self._others = dict(others)

    @property
    def name(self) -> str:
        """The usual model's name."""
        return self._usual.name

    @property
    def chat(self) -> Chat | None:
        """The usual model's chat, or None."""
        return chat_below(self._usual)

    def serving(self, task: str) -> LanguageModel:
        """Return the model for the named task."""
        return self._others.get(task, self._usual)

    def sampled(self, wanted: Mapping[str, Mapping[str, Any]]) -> "RoutedModel":
        """Return these models with sampling parameters by task, where they take any."""
        others = {task: sampled(model, wanted) for task, model in self._others.items()}
        return RoutedModel(sampled(self._usual, wanted), others)

    def close(self) -> None:
        """Close the connections of all models."""
        for model in (self._usual, *self._others.values()):
            close(model)

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply of the task's model."""
        return self.serving(task.name).reply(task)

    def stream(self, task: Task[Any], /) -> Iterator[str]:
        """Yield the pieces of text from the task's model."""
        model: Any = self.serving(task.name)
        if hasattr(model, "stream"):
            yield from model.stream(task)
        else:
            yield model.reply(task).text


def serving(model: LanguageModel, task: str) -> LanguageModel:
    """Return the model that answers the named task."""
    return model.serving(task) if isinstance(model, RoutedModel) else model


def sampled(model: LanguageModel, wanted: Mapping[str, Mapping[str, Any]]) -> LanguageModel:
    """Return the model with the sampling parameters by task that a recipe asks for, if it takes any."""
    found: Any = model
    changed: LanguageModel = found.sampled(wanted) if wanted and hasattr(model, "sampled") else model
    return changed
