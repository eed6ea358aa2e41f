"""Sentence vectors, each embedded once while cached."""

from collections.abc import Sequence

import numpy as np

from hgmem.models.embedding import LONGEST, CheckedEmbedder, Embedder, TextKind, Vectors


class VectorCache:
    """Embeds sentences through a `CheckedEmbedder`, which keeps the most recent vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder if isinstance(embedder, CheckedEmbedder) else CheckedEmbedder(embedder)

    def of(self, texts: Sequence[str], *, kind: TextKind = "document") -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions). Long texts are truncated."""
        if not texts:
            return np.empty((0, self.embedder.dimensions), dtype=np.float32)
        return self.embedder.embed([text[:LONGEST] for text in texts], kind=kind)
