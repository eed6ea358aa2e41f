"""Vectors kept on disk: a text is embedded once by a model, in whatever corpus or process it comes again."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from hgmem.models.cache_file import CacheFile
from hgmem.models.embedding import Embedder, TextKind, Vectors
from hgmem.values.sharing import Shared

_CREATE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL)"
_AT_ONCE = 1_000  # keys of one look-up


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
