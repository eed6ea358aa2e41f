"""Waiting times: wrappers that record the calls of embedders and models, and the time with at least one active call."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hgmem.models.embedding import Embedder, Kind, Vectors

Span = tuple[float, float]  # seconds of `time.perf_counter`


class Noted:
    """Records when calls began and ended, any number of them at once."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._lock = threading.Lock()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Record the block as one call."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.spans.append((began, time.perf_counter()))


class NotedEmbedder(Noted):
    """An embedder whose calls are recorded."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._embedder = embedder
        self.name, self.dimensions = embedder.name, embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return the embedder's vectors."""
        with self.call():
            return self._embedder.embed(texts, kind=kind)


class NotedModel(Noted):
    """A model whose calls are recorded."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model
        self.name = model.name

    def reply(self, task: Any) -> Any:
        """Return the model's reply."""
        with self.call():
            return self._model.reply(task)


def covered(spans: Iterable[Span], within: Span) -> float:
    """Return the seconds of `within` in which at least one of the spans is active."""
    first, last = within
    seconds, until = 0.0, first
    for began, ended in sorted(spans):
        begin, end = max(began, until), min(ended, last)
        if end > begin:
            seconds += end - begin
            until = end
    return seconds
