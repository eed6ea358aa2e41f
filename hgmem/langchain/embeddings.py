"""Our embedders as LangChain's embeddings."""

from typing import Any

from langchain_core.embeddings import Embeddings

from hgmem.connecting import adapted_embedder, find_embedder
from hgmem.embed import CheckedEmbedder, Embedder
from hgmem.settings import load


class HGMemEmbeddings(Embeddings):
    """The embedder that is set (`HGMEM_EMBEDDING_MODEL`), one by name, or an object, such as `client.embedder`.

    Vectors have length one. Every field of `Settings` may be given by name.
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
