"""What the prompts of a question showed, recorded by a tracing hook."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hgmem.models.prompts import prompt_of
from hgmem.values.events import Watcher
from hgmem.values.task import Task

ANSWER = "answer"  # the task that writes the answer, the same for all systems

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The text of one prompt, as a chat model sends it."""

    task: str
    text: str

    @property
    def characters(self) -> int:
        """The length of the prompt."""
        return len(self.text)


@dataclass(slots=True)
class Prompts(Watcher):
    """Records the prompt of each model call, also for the rule-based model, which sends none."""

    found: list[Prompt] = field(default_factory=list)

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Record a task's prompt, then run the call."""
        messages = prompt_of(task).filled(task.fields())
        self.found.append(Prompt(task=task.name, text="\n\n".join(message.content for message in messages)))
        return work()

    @property
    def answer(self) -> Prompt | None:
        """The prompt of the last answer, or None."""
        return next((prompt for prompt in reversed(self.found) if prompt.task == ANSWER), None)

    @property
    def characters(self) -> dict[str, int]:
        """The characters of all prompts by task."""
        counts: dict[str, int] = {}
        for prompt in self.found:
            counts[prompt.task] = counts.get(prompt.task, 0) + prompt.characters
        return counts
