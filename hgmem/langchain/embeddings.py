"""hgmem's embedders as LangChain embeddings."""

from typing import Any

from langchain_core.embeddings import Embeddings

from hgmem.client.connecting import adapted_embedder, find_embedder
from hgmem.models.embedding import CheckedEmbedder, Embedder
from hgmem.settings import load


class HGMemEmbeddings(Embeddings):
    """LangChain embeddings over hgmem's embedder: the configured one, one by name, or an object.

    `client.embedder` is such an object, `HGMEM_EMBEDDING_MODEL` configures the default. Vectors have length one. Every
    field of `Settings` is accepted by name.
    """

    def __init__(self, embedder: Embedder | str | Any = None, **settings: Any) -> None:
        if embedder is None or isinstance(embedder, str):
            self.embedder = find_embedder(load(embedding_model=embedder or None, **settings))
        else:
            self.embedder = embedder if isinstance(embedder, CheckedEmbedder) else adapted_embedder(embedder)

    @property
    def model(self) -> str:
        """The embedder's name."""
        return self.embedder.name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the texts' vectors, in their order."""
        vectors: list[list[float]] = self.embedder.embed(texts, kind="document").tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return a question's vector."""
        vector: list[float] = self.embedder.embed([text], kind="query")[0].tolist()
        return vector
