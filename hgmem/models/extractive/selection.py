"""Choices among unit vectors, of shape (number, dimensions): the central, the nearest, and such as are unlike."""

from collections.abc import Sequence

import numpy as np

from hgmem.models.embedding import Vectors

_REPETITION = 0.7  # how much likeness to what was chosen counts against a text


def nearness_to_centre(vectors: Vectors) -> Vectors:
    """Return the cosine of each vector to the mean of all."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    near: Vectors = vectors @ (mean / length if length else mean)
    return near


def highest(scores: Vectors, most: int) -> list[int]:
    """Return the indices of the `most` highest scores, best first, equal ones in their order."""
    return [int(at) for at in np.argsort(-scores, kind="stable")[:most]]


def diverse(vectors: Vectors, worth: Vectors, costs: Sequence[int], *, budget: int) -> list[int]:
    """Return the indices of texts in the order of choice: worth much, and unlike each other.

    This is maximal marginal relevance. The costs together stay within `budget`, except that there is at least one.
    """
    chosen: list[int] = []
    alike = np.zeros(len(vectors), dtype=np.float32)
    waiting = np.ones(len(vectors), dtype=bool)
    left = budget
    while waiting.any():
        at = int(np.argmax(np.where(waiting, worth - _REPETITION * alike, -np.inf)))
        waiting[at] = False
        if chosen and costs[at] > left:
            continue
        chosen.append(at)
        left -= costs[at]
        alike = np.maximum(alike, vectors @ vectors[at])
        if left <= 0:
            break
    return chosen
