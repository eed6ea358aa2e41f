"""Propagation: vectors of hyperedges from their members, and back to the members (paper, section 3.3)."""

from collections.abc import Sequence

import numpy as np

from hgmem.models.embedding import Vectors


def hyperedge(members: Vectors, weights: Vectors) -> Vectors:
    """Return a hyperedge's vector: h_e = Σ_v softmax(w_{e,v}) · h_v, over all members.

    `members` are unit vectors, (n, dimensions), `weights` are in [0, 1], so that the softmax is nearly flat.
    """
    exponents = np.exp(np.asarray(weights, dtype=np.float64) - float(np.max(weights)))
    shares = exponents / exponents.sum()
    vector: Vectors = (shares @ members).astype(np.float32)
    return vector


def propagated(own: Vectors, edges: Sequence[Vectors], *, strength: float, aggregation: str) -> Vectors:
    """Return a node's vector, of unit length: h'_v = h_v + λ · Agg_{e∋v} h_e, Agg the sum or the mean."""
    if not edges:
        return own
    together = np.sum(edges, axis=0) if aggregation == "sum" else np.mean(edges, axis=0)
    vector = own + strength * together
    length = float(np.linalg.norm(vector))
    found: Vectors = (vector / length).astype(np.float32) if length else own
    return found
