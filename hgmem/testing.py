"""Test doubles for user code: a deterministic embedder and a scripted model."""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedding import TextKind, Vectors
from hgmem.text.segmentation import words
from hgmem.values.task import Task

Reply = TypeVar("Reply")


class DeterministicEmbedder:
    """An embedder that hashes words: no weights, no download, and texts that share words are near."""

    name = "deterministic"

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in words(text) or [text]:
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
                vectors[row, int.from_bytes(digest[:4], "big") % self.dimensions] += 1 if digest[4] % 2 else -1
            if not vectors[row].any():
                vectors[row, 0] = 1
        return cast("Vectors", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class ScriptedModel:
    """A model that answers each task by name: with the next reply of a list, or with a function of the task.

    `tasks` records the received tasks in order. Functions may run concurrently, as model calls do.
    """

    name = "scripted"

    def __init__(self, replies: Mapping[str, Sequence[object] | Callable[[object], object]]) -> None:
        self.tasks: list[Task[object]] = []
        self._replies = {name: reply if callable(reply) else iter(reply) for name, reply in replies.items()}
        self._lock = threading.Lock()

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the next reply to a task of this name.

        Raises `ModelError` if the script has none.
        """
        with self._lock:
            self.tasks.append(cast("Task[object]", task))
            source = self._replies.get(task.name, iter(()))
            reply = None if callable(source) else next(source, None)
        if callable(source):
            reply = source(task)
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, task.reply_type):
            raise ModelError(f"the script has no {task.reply_type.__name__} for task {task.name!r}, only {reply!r}")
        return reply
