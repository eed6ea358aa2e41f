"""The vectors of the texts that were embedded last, in RAM: a question comes back to its own texts several times."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

LONGEST = 2_000  # characters: chunks are longer, and come once

Vector = NDArray[np.float32]


class RecentVectors:
    """The `most` newest vectors by kind and text, those of long texts left out. Safe between threads.

    Copies are the object itself, and pickling leaves the vectors behind.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = threading.Lock()

    def __deepcopy__(self, _: object) -> "RecentVectors":
        """Return the object itself."""
        return self

    def __reduce__(self) -> tuple[type["RecentVectors"], tuple[int]]:
        """Return how to make one without vectors."""
        return RecentVectors, (self._most,)

    def known(self, texts: Iterable[str], kind: str) -> dict[str, Vector]:
        """Return the vectors that are here, by text. These become the newest."""
        with self._lock:
            found = {text: self._kept[kind, text] for text in texts if (kind, text) in self._kept}
            for text in found:
                self._kept.move_to_end((kind, text))
        return found

    def keep(self, fresh: Mapping[str, Vector], kind: str) -> None:
        """Add vectors, and drop the oldest beyond the limit."""
        with self._lock:
            for text, vector in fresh.items():
                if len(text) <= LONGEST:
                    self._kept[kind, text] = vector.copy()  # a row would hold its whole matrix
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
