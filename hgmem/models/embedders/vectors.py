"""What adapters of embedders share: the length of vectors, determined once, and their matrix."""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedding import Vectors


class Length:
    """The length of an embedder's vectors, determined once."""

    def __init__(self, known: int | None) -> None:
        self._known = known
        self._asking = threading.Lock()

    def of(self, ask: Callable[[], Sequence[Sequence[float]]]) -> int:
        """Return the length: the one known, or that of the first vector that `ask` returns."""
        with self._asking:
            if self._known is None:
                self._known = len(ask()[0])
            return self._known


def matrix(name: str, vectors: Sequence[Sequence[float]]) -> Vectors:
    """Return vectors as one matrix, float32. Raises `ModelError` if their lengths differ."""
    try:
        return np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"embedder {name!r} returned vectors of different lengths: {error}") from error
