"""The embedder interface, and the checks and the memory of recent vectors around any embedder."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.errors import HGMemError, ModelError
from hgmem.models.llm import close
from hgmem.models.metering import timed
from hgmem.text.language import counted
from hgmem.values.sharing import Shared

_LONGEST = 2_000  # characters: chunks are longer, and come once

TextKind: TypeAlias = Literal["query", "document"]
Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """The interface of embedders, which turn texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, as recorded in `:Corpus.embedding_model`."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""


class RecentVectors(Shared):
    """The `most` newest vectors by kind and text, those of long texts left out. Safe between threads.

    Copies are the object itself, and pickling leaves the vectors behind.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce_ex__(self, _: object) -> Any:
        """Return how to make one without vectors."""
        return RecentVectors, (self._most,)

    def known(self, texts: Iterable[str], kind: str) -> dict[str, Vectors]:
        """Return the vectors that are here, by text. These become the newest."""
        with self._lock:
            found = {text: self._kept[kind, text] for text in texts if (kind, text) in self._kept}
            for text in found:
                self._kept.move_to_end((kind, text))
        return found

    def keep(self, fresh: Mapping[str, Vectors], kind: str) -> None:
        """Add vectors, and drop the oldest beyond the limit."""
        with self._lock:
            for text, vector in fresh.items():
                if len(text) <= _LONGEST:
                    self._kept[kind, text] = vector.copy()  # a row would hold its whole matrix
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class CheckedEmbedder:
    """An embedder that counts calls and checks vectors: shape, finite values, no zero vectors.

    Texts whose vectors are among the `recent` newest ones, and repeats within a call, are not embedded again.
    """

    def __init__(self, embedder: Embedder, *, recent: int = 4_096) -> None:
        self._embedder = embedder
        self._recent = RecentVectors(recent)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        known = self._recent.known(texts, kind)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not texts:
            return self._embedded([], kind)
        if missing:
            fresh = dict(zip(missing, self._embedded(missing, kind), strict=True))
            self._recent.keep(fresh, kind)
            known |= fresh
        return np.stack([known[text] for text in texts])

    def of(self, texts: Sequence[str], *, kind: TextKind = "document") -> Vectors:
        """Return the vectors of sentences, none of them longer than those that are kept: long texts are truncated."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return self.embed([text[:_LONGEST] for text in texts], kind=kind)

    def _embedded(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        try:
            with timed("embedding", kind, texts=len(texts)):
                given = self._embedder.embed(texts, kind=kind)
        except HGMemError:
            raise
        except Exception as error:  # another package's code
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ModelError(f"embedder {self.name!r} failed on {counted(len(texts), 'text')}: {said}") from error
        try:
            vectors = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"embedder {self.name!r} returned {type(given).__name__}, not vectors: {error}") from error
        if vectors.shape != (len(texts), self.dimensions):
            raise ModelError(
                f"embedder {self.name!r} returned an array of shape {vectors.shape} for {len(texts)} "
                f"texts: expected {self.dimensions} dimensions"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not bool(np.all(np.isfinite(lengths) & (lengths > 0))):
            raise ModelError(f"embedder {self.name!r} returned a zero or non-finite vector")
        return np.asarray(vectors / lengths, dtype=np.float32)

    def close(self) -> None:
        """Close what the embedder has open, if it has `close`. It is opened again when needed."""
        close(self._embedder)
