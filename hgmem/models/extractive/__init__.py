"""The built-in rule-based model: text methods and an embedder instead of a language model.

Tasks bring their own extractive functions, beside their prompt and reply type.
"""

from typing import TypeVar, cast

from hgmem.errors import ModelError
from hgmem.models.embedding import CheckedEmbedder, Embedder
from hgmem.values.task import Task

Reply = TypeVar("Reply")


class ExtractiveModel:
    """Answers each task with its extractive function, so every sentence is quoted from the evidence.

    Replies are deterministic. Safe between threads. Sentence vectors are cached across tasks.
    """

    name = "extractive"

    def __init__(self, embedder: Embedder) -> None:
        self._vectors = embedder if isinstance(embedder, CheckedEmbedder) else CheckedEmbedder(embedder)

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply to `task`.

        Raises `ModelError` for a task without an extractive function.
        """
        extractive = getattr(task, "extractive", None)
        if extractive is None:
            raise ModelError(f"task {task.name!r} needs a language model: set HGMEM_MODEL")
        return cast(Reply, extractive(self._vectors))
