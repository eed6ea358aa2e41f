"""The embedder interface."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.errors import ModelError
from hgmem.models.metering import timed
from hgmem.models.recent_vectors import RecentVectors

Kind: TypeAlias = Literal["query", "document"]
Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """The interface of embedders, which turn texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, as recorded in `:Corpus.embedding_model`."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""


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

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
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

    def _embedded(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the embedder's vectors of texts, checked."""
        with timed("embedding", kind):
            given = self._embedder.embed(texts, kind=kind)
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
        closing = getattr(self._embedder, "close", None)
        if callable(closing):
            closing()
