"""Means with 95 % intervals by bootstrap over questions, seeded, by percentiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 4_000
SEED = 20_251
BOUNDS = (2.5, 97.5)  # percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over `n` questions with its interval."""

    mean: float
    low: float
    high: float
    n: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean of the questions' values, or None without any."""
    if not values:
        return None
    numbers = np.asarray(values, dtype=np.float64)
    picked = np.random.default_rng(SEED).integers(0, len(numbers), size=(RESAMPLES, len(numbers)))
    low, high = np.percentile(numbers[picked].mean(axis=1), BOUNDS)
    return Mean(mean=float(numbers.mean()), low=float(low), high=float(high), n=len(numbers))


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> Mean | None:
    """Return the mean difference, first minus second, over the questions that both have."""
    return mean_of([first[name] - second[name] for name in first if name in second])
