"""Embedders on a server that speaks OpenAI's interface. The package is imported at the first text."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypedDict, Unpack

from hgmem.errors import ModelError
from hgmem.models.embedding import RequestedVectors, TextKind

OPENAI = "https://api.openai.com/v1"


class Options(TypedDict, total=False):
    """Request options: texts per request, timeout in seconds, number of retries."""

    batch: int
    timeout: float
    retries: int


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
        self._api_key = api_key
        self._wanted = dimensions
        self._batch = options.get("batch", 256)
        self._timeout = options.get("timeout", 60.0)
        self._retries = options.get("retries", 5)
        self._making = threading.Lock()

    @property
    def state(self) -> str:
        """What tells models of the same name on different servers apart."""
        return f"{self.endpoint} {self._wanted or ''}"

    def requested(self, texts: Sequence[str], *, kind: TextKind) -> list[list[float]]:
        """Return the server's vectors, which are the same for both kinds."""
        batches = (self._batch_of(texts[at : at + self._batch]) for at in range(0, len(texts), self._batch))
        return [vector for batch in batches for vector in batch]

    def _batch_of(self, texts: Sequence[str]) -> list[list[float]]:
        import openai

        shorter: dict[str, Any] = {"dimensions": self._wanted} if self._wanted else {}
        try:
            with self._making:
                client = self._client
            sent = [text or " " for text in texts]  # servers reject empty texts
            got = client.embeddings.create(model=self.model, input=sent, **shorter)
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
