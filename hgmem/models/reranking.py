"""Rerankers: models that read a question and a text together and say how well they fit."""

import math
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hgmem.errors import ModelError
from hgmem.models.embedders.sentence_transformer import loaded_by_torch
from hgmem.models.llm import close
from hgmem.models.llm.openai_server import OpenAIServer, message_of
from hgmem.models.llm.rate_limits import Gate
from hgmem.models.metering import timed
from hgmem.text.segmentation import sound
from hgmem.values.sharing import Shared

# What vLLM and llama.cpp say of a text that is too long, llama.cpp with status 500.
_TOO_LONG = re.compile(
    r"too (?:large|long) to process|maximum context|context[ _](?:length|size|window)", re.IGNORECASE
)


class Reranker(Protocol):
    """The interface of rerankers."""

    @property
    def name(self) -> str:
        """The model's name, as usage shows it."""

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return for each text how well it fits the query, more for better."""


class CheckedReranker:
    """A reranker that counts calls and texts, and checks that each text has a score, a finite number."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    @property
    def name(self) -> str:
        """The model's name."""
        return self._reranker.name

    def rerank(self, query: str, texts: Sequence[str], /) -> list[float]:
        """Return for each text how well it fits the query, more for better."""
        if not texts:
            return []
        with timed("reranking", self.name, texts=len(texts)):
            given = self._reranker.rerank(query, texts)
        try:
            scores = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"reranker {self.name!r} returned {type(given).__name__}, not scores: {error}") from error
        if scores.shape != (len(texts),):
            raise ModelError(
                f"reranker {self.name!r} returned scores of shape {scores.shape} for {len(texts)} texts: use a model "
                "with one score for each text"
            )
        found: list[float] = scores.tolist()
        if odd := [score for score in found if not math.isfinite(score)]:
            raise ModelError(f"reranker {self.name!r} returned the score {odd[0]}: use another model, or rerank=0")
        return found

    def close(self) -> None:
        """Close what the reranker has open, if it has `close`. It is opened again when needed."""
        close(self._reranker)


class CrossEncoderReranker(Shared):
    """A CrossEncoder of sentence-transformers, by name or local path, loaded at the first text.

    A name is looked up in the Hugging Face cache of this machine, and downloaded only with `download`.
    """

    def __init__(self, name: str, *, download: bool = False) -> None:
        self.name = name
        self._download = download
        self._lock = threading.Lock()

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return the model's scores. It truncates texts that are longer than it takes."""
        with self._lock:  # its tokenizer serves one thread at a time
            scores: Sequence[float] = self._model.predict([(query, text) for text in texts], show_progress_bar=False)
            return scores

    @cached_property
    def _model(self) -> Any:
        return loaded_by_torch("CrossEncoder", self.name, what="reranker", download=self._download)


class ServerReranker(Shared):
    """A model behind the rerank endpoint of a server, in the form of Cohere and Jina, as vLLM and llama.cpp have it."""

    def __init__(self, name: str, *, server: OpenAIServer, gate: Gate) -> None:
        self.name = name
        self._server = server
        self._gate = gate

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return the server's scores. Raises `ModelError` unless it has one for each text."""
        return self._gate.sent(str(self._server), lambda: self._requested(query, texts))

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        self._server.close()

    def _requested(self, query: str, texts: Sequence[str]) -> list[float]:
        sent = [sound(text) or " " for text in texts]  # servers reject empty texts
        body = {"model": self.name, "query": sound(query), "documents": sent, "top_n": len(sent)}
        with self._server.translating("the request", self._too_long):
            answered: Any = self._server.client().post(
                "/rerank", cast_to=object, body={**body, "return_documents": False}
            )
            try:
                scores = [(row["index"], float(row["relevance_score"])) for row in answered["results"]]
            except (KeyError, TypeError, ValueError) as error:
                raise self._server.invalid() from error
        places = [at for at, _ in scores]
        odd = next((at for at in places if at not in range(len(sent)) or places.count(at) > 1), None)
        if odd is not None:
            wrong = f"index {odd!r} twice" if odd in range(len(sent)) else f"invalid index {odd!r}"
            raise ModelError(f"{self._server} returned the {wrong} for {len(sent)} texts: use another server")
        if len(scores) < len(sent):
            raise ModelError(f"{self._server} returned {len(scores)} scores for {len(sent)} texts: lower `rerank`")
        return [score for _, score in sorted(scores)]

    def _too_long(self, error: Exception, _: int) -> ModelError | None:
        if not _TOO_LONG.search(message_of(error)):
            return None
        return ModelError(
            f"{self._server} rejected a text that is too long for it: use a model for longer texts, or index with a "
            f"lower HGMEM_CHUNK_TOKENS ({self._server.reason(error)})"
        )
