"""LangChain embeddings as embedders."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hgmem.errors import ModelError
from hgmem.models.embedding import RequestedVectors, TextKind

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


class LangChainEmbedder(RequestedVectors):
    """Any LangChain embeddings, recorded under the name of their model, else of their class."""

    def __init__(self, embeddings: "Embeddings") -> None:
        super().__init__()
        names = [getattr(embeddings, attribute, None) for attribute in ("model", "model_name")]
        self.name = next((name for name in names if name and isinstance(name, str)), type(embeddings).__name__)
        self._embeddings = embeddings

    def requested(self, texts: Sequence[str], *, kind: TextKind) -> list[list[float]]:
        """Return LangChain's vectors."""
        try:
            if kind == "query":
                return [self._embeddings.embed_query(text) for text in texts]
            return self._embeddings.embed_documents(list(texts))
        except Exception as error:  # whatever the package behind LangChain raises
            message = " ".join(str(error).split())
            raise ModelError(f"embedder {self.name!r} failed: {type(error).__name__}: {message}") from error
