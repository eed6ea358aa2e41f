"""Embedders whose vectors are requested: from a server with OpenAI's interface, or from LangChain embeddings."""

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedding import TextKind, Vectors
from hgmem.models.llm.openai_server import OPENAI, OpenAIServer, SettingNames
from hgmem.values.sharing import Shared

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


class RequestedVectors(Shared):
    """An embedder whose vectors are requested from elsewhere. One is requested if their length is not known yet."""

    name: str

    def __init__(self, dimensions: int | None = None) -> None:
        self._known = dimensions
        self._asking = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        with self._asking:
            if self._known is None:
                self._known = len(self.requested(["a"], kind="query")[0])
            return self._known

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the vectors, float32 of shape (len(texts), dimensions), in the order of `texts`.

        Raises `ModelError` if there are none, or their lengths differ.
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        vectors = self.requested(texts, kind=kind)
        try:
            return np.asarray(vectors, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"embedder {self.name!r} returned vectors of different lengths: {error}") from error

    @abstractmethod
    def requested(self, texts: Sequence[str], *, kind: TextKind) -> Sequence[Sequence[float]]:
        """Return a vector for each of at least one text."""


class Options(TypedDict, total=False):
    """Request options: texts per request, timeout in seconds, number of retries, and what errors call settings."""

    batch: int
    timeout: float
    retries: int
    names: SettingNames


class OpenAIEmbedder(RequestedVectors):
    """An embedding model of any OpenAI-compatible server, recorded as `openai:<model>`.

    `dimensions` requests shorter vectors, if the model supports it. The defaults are `batch` 256, `timeout` 60 seconds,
    `retries` 5.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(dimensions)
        self.model = name
        self.name = f"openai:{name}"
        self.endpoint = base_url or OPENAI
        self._wanted = dimensions
        self._batch = options.get("batch", 256)
        self._server = OpenAIServer(
            who=f"embedder {self.name!r}",
            endpoint=self.endpoint,
            key=api_key or "",
            timeout=options.get("timeout", 60.0),
            retries=options.get("retries", 5),
            names=options.get("names", SettingNames(model="its name", address="its address")),
        )

    @property
    def state(self) -> str:
        """What tells models of the same name on different servers apart."""
        return f"{self.endpoint} {self._wanted or ''}"

    def requested(self, texts: Sequence[str], *, kind: TextKind) -> list[list[float]]:
        """Return the server's vectors, which are the same for both kinds."""
        batches = (self._batch_of(texts[at : at + self._batch]) for at in range(0, len(texts), self._batch))
        return [vector for batch in batches for vector in batch]

    def _batch_of(self, texts: Sequence[str]) -> list[list[float]]:
        shorter: dict[str, Any] = {"dimensions": self._wanted} if self._wanted else {}
        with self._server.translating("the request"):
            try:
                sent = [text or " " for text in texts]  # servers reject empty texts
                got = self._server.client().embeddings.create(model=self.model, input=sent, **shorter)
                rows = sorted(got.data, key=lambda row: row.index)
            except (AttributeError, TypeError) as error:
                raise self._server.invalid() from error
        if [row.index for row in rows] != list(range(len(texts))):
            raise ModelError(f"{self._server} returned {len(rows)} vectors for {len(texts)} texts")
        return [row.embedding for row in rows]


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
