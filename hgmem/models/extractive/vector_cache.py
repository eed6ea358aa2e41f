"""Sentence vectors, each embedded once while cached."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from hgmem.models.embedding import Embedder, Kind, Vectors

_CHARACTERS = 2_000


class VectorCache:
    """Embeds texts through an embedder and caches the `size` most recent vectors. Safe between threads."""

    def __init__(self, embedder: Embedder, *, size: int = 4_096) -> None:
        self.embedder = embedder
        self.size = size
        self._kept: OrderedDict[tuple[Kind, str], Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions). Long texts are truncated."""
        texts = [text[:_CHARACTERS] for text in texts]
        if not texts:
            return np.empty((0, self.embedder.dimensions), dtype=np.float32)
        known = self._known(texts, kind)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            fresh = self.embedder.embed(missing, kind=kind)
            known.update(zip(missing, fresh, strict=True))
            self._keep({text: known[text] for text in missing}, kind)
        return np.stack([known[text] for text in texts])

    def _known(self, texts: Sequence[str], kind: Kind) -> dict[str, Vectors]:
        with self._lock:
            found = {text: self._kept[kind, text] for text in texts if (kind, text) in self._kept}
            for text in found:
                self._kept.move_to_end((kind, text))
        return found

    def _keep(self, fresh: dict[str, Vectors], kind: Kind) -> None:
        with self._lock:
            for text, vector in fresh.items():
                self._kept[kind, text] = vector
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)
