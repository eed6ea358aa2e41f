"""The embedder interface, and what is around any embedder: checks, recent vectors, and vectors kept on disk."""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.errors import HGMemError, ModelError
from hgmem.models.cache_file import CacheFile
from hgmem.models.llm import close
from hgmem.models.metering import timed
from hgmem.text.language import counted
from hgmem.values.sharing import Shared

_LONGEST = 2_000  # characters: chunks are longer, and come once

TextKind: TypeAlias = Literal["query", "document"]
Vectors: TypeAlias = NDArray[np.float32]
_CREATE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL)"
_AT_ONCE = 1_000  # keys of one look-up


class Embedder(Protocol):
    """The interface of embedders, which turn texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, as recorded in `:Corpus.embedding_model`."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""


class RecentVectors(Shared):
    """The `most` newest vectors by kind and text, those of long texts left out. Safe between threads.

    Copies are the object itself, and pickling leaves the vectors behind.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce_ex__(self, _: object) -> Any:
        """Return how to make one without vectors."""
        return RecentVectors, (self._most,)

    def known(self, texts: Iterable[str], kind: str) -> dict[str, Vectors]:
        """Return the vectors that are here, by text. These become the newest."""
        with self._lock:
            found = {text: self._kept[kind, text] for text in texts if (kind, text) in self._kept}
            for text in found:
                self._kept.move_to_end((kind, text))
        return found

    def keep(self, fresh: Mapping[str, Vectors], kind: str) -> None:
        """Add vectors, and drop the oldest beyond the limit."""
        with self._lock:
            for text, vector in fresh.items():
                if len(text) <= _LONGEST:
                    self._kept[kind, text] = vector.copy()  # a row would hold its whole matrix
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class CheckedEmbedder:
    """An embedder that counts calls and checks vectors: shape, finite values, no zero vectors.

    Texts whose vectors are among the `recent` newest ones, and repeats within a call, are not embedded again.
    """

    def __init__(self, embedder: Embedder, *, recent: int = 4_096) -> None:
        self._embedder = embedder
        self._recent = RecentVectors(recent)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        known = self._recent.known(texts, kind)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not texts:
            return self._embedded([], kind)
        if missing:
            fresh = dict(zip(missing, self._embedded(missing, kind), strict=True))
            self._recent.keep(fresh, kind)
            known |= fresh
        return np.stack([known[text] for text in texts])

    def of(self, texts: Sequence[str], *, kind: TextKind = "document") -> Vectors:
        """Return the vectors of sentences, none of them longer than those that are kept: long texts are truncated."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return self.embed([text[:_LONGEST] for text in texts], kind=kind)

    def _embedded(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        try:
            with timed("embedding", kind, texts=len(texts)):
                given = self._embedder.embed(texts, kind=kind)
        except HGMemError:
            raise
        except Exception as error:  # another package's code
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ModelError(f"embedder {self.name!r} failed on {counted(len(texts), 'text')}: {said}") from error
        try:
            vectors = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"embedder {self.name!r} returned {type(given).__name__}, not vectors: {error}") from error
        if vectors.shape != (len(texts), self.dimensions):
            raise ModelError(
                f"embedder {self.name!r} returned an array of shape {vectors.shape} for {len(texts)} "
                f"texts: expected {self.dimensions} dimensions"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not bool(np.all(np.isfinite(lengths) & (lengths > 0))):
            raise ModelError(f"embedder {self.name!r} returned a zero or non-finite vector")
        return np.asarray(vectors / lengths, dtype=np.float32)

    def close(self) -> None:
        """Close what the embedder has open, if it has `close`. It is opened again when needed."""
        close(self._embedder)


class KeptVectors(Shared):
    """An embedder whose vectors are kept in the file at `path`, the newest `most` of them.

    `state` tells apart models of the same name, such as the weights of a path before and after a training. Texts are
    not kept: the keys are hashes. Without the file it is the embedder alone.
    """

    def __init__(self, embedder: Embedder, path: Path, *, most: int, state: str = "") -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._file = CacheFile(path, create=_CREATE, kept="vectors")
        self._most = most
        self._state = state
        self._length: int | None = None  # of a vector that was found: the model need not be loaded for it

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._length or self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        keys = [self._key(text, kind) for text in texts]
        known = self._found(list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            known |= self._embedded(missing, kind)
        if len({len(vector) for vector in known.values()}) > 1:  # some were kept of another model of this name
            known = self._embedded(dict(zip(keys, texts, strict=True)), kind)
        if not texts:
            return self._embedder.embed([], kind=kind)
        return np.stack([known[key] for key in keys])

    def _embedded(self, texts: dict[str, str], kind: TextKind) -> dict[str, Vectors]:
        fresh = dict(zip(texts, self._embedder.embed(list(texts.values()), kind=kind), strict=True))
        self._length = len(next(iter(fresh.values())))
        self._keep(fresh)
        return fresh

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _key(self, text: str, kind: TextKind) -> str:
        parts = "\0".join((self._embedder.name, self._state, kind, text))
        return sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _found(self, keys: Sequence[str]) -> dict[str, Vectors]:
        found: dict[str, Vectors] = {}
        for at in range(0, len(keys), _AT_ONCE):
            rows = self._file.run(
                "SELECT key, vector FROM vectors WHERE key IN (SELECT value FROM json_each(?))",
                [json.dumps(keys[at : at + _AT_ONCE])],
            )
            found |= {str(key): np.frombuffer(vector, dtype=np.float32) for key, vector in rows if _whole(vector)}
        self._length = self._length or next((len(vector) for vector in found.values()), None)
        return found

    def _keep(self, fresh: dict[str, Vectors]) -> None:
        rows = [(key, np.asarray(vector, dtype=np.float32).tobytes()) for key, vector in fresh.items()]
        self._file.run("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows, many=True)
        self._file.run("DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?", [self._most])


def _whole(vector: object) -> bool:
    """Whether what was kept can be a vector: another version may have kept something else."""
    return isinstance(vector, bytes) and len(vector) > 0 and len(vector) % 4 == 0
