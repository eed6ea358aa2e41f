"""Embedders on a server that speaks OpenAI's interface. The package is imported at the first text."""

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from hgmem.errors import ModelError
from hgmem.models.embedding import RequestedVectors, TextKind
from hgmem.models.llm.openai_server import OPENAI, OpenAIServer


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
        self._wanted = dimensions
        self._batch = options.get("batch", 256)
        self._server = OpenAIServer(
            who=f"embedder {self.name!r}",
            endpoint=self.endpoint,
            key=api_key or "",
            timeout=options.get("timeout", 60.0),
            retries=options.get("retries", 5),
            named="its name",
            address="its address",
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
