"""LangChain embeddings as embedders."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedding import Length, TextKind, Vectors, matrix
from hgmem.values.sharing import Shared


class Embeddings(Protocol):
    """The interface of `langchain_core.embeddings.Embeddings`."""

    def embed_documents(self, texts: list[str], /) -> list[list[float]]:
        """Return a vector for each text."""

    def embed_query(self, text: str, /) -> list[float]:
        """Return a question's vector."""


class LangChainEmbedder(Shared):
    """Any LangChain embeddings, recorded under the name of their model, else of their class."""

    def __init__(self, embeddings: Embeddings) -> None:
        names = [getattr(embeddings, attribute, None) for attribute in ("model", "model_name")]
        self.name = next((name for name in names if name and isinstance(name, str)), type(embeddings).__name__)
        self._embeddings = embeddings
        self._length = Length(None)

    @property
    def dimensions(self) -> int:
        """The length of every vector. One is requested if it is not known yet."""
        return self._length.of(lambda: self._requested(["a"], kind="query"))

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return LangChain's vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return matrix(self.name, self._requested(texts, kind=kind))

    def _requested(self, texts: Sequence[str], *, kind: TextKind) -> list[list[float]]:
        try:
            if kind == "query":
                return [self._embeddings.embed_query(text) for text in texts]
            return self._embeddings.embed_documents(list(texts))
        except Exception as error:  # whatever the package behind LangChain raises
            message = " ".join(str(error).split())
            raise ModelError(f"embedder {self.name!r} failed: {type(error).__name__}: {message}") from error
