"""What a trail remembers: a vector that questions pull towards themselves, or lose (paper, equations 1 to 3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import acos, asin, cos, pi, sin, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.systems.remindrag.recipes import Penalty

Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One learning of a trail: the question's unit vector, and whether the trail led to something of use."""

    question: Vector
    effective: bool
    penalty: Penalty


def delta(x: float) -> float:
    """Return δ(x) = (2/π)·cos(πx/2), how far a trail of length x moves (paper, section 3.3)."""
    return 2 / pi * cos(pi * x / 2)


def touched(trail: Vector, touch: Touch) -> Vector:
    """Return a trail's vector w after one learning of a question q̂ (paper, equation 1).

    Effective: w + δ(‖w‖)·q̂. Else only the component p = w·q̂ shrinks, if it is positive: by the share δ(p) with the
    penalty `shrink`, by the share max(δ(p), p) with `forget`, which also reduces p = 1, and not at all with `off`.
    """
    # Computed in double precision and stored as float32 after each learning, so that a replay gives the same bits.
    held, question = trail.astype(np.float64), touch.question.astype(np.float64)
    if touch.effective:
        return np.asarray(held + delta(float(np.linalg.norm(held))) * question, dtype=np.float32)
    along = float(held @ question)
    if along <= 0 or touch.penalty == "off":
        return trail
    share = abs(delta(along)) if touch.penalty == "shrink" else max(abs(delta(along)), along)
    return np.asarray(held - min(share, 1.0) * along * question, dtype=np.float32)


def replayed(touches: Iterable[Touch], *, dimensions: int) -> Vector:
    """Return the vector of a trail from all of its learnings in their order. Without any, it is zero."""
    trail: Vector = np.zeros(dimensions, dtype=np.float32)
    for touch in touches:
        trail = touched(trail, touch)
    return trail


def relevance(alike: float, along: float, *, alpha: float) -> float:
    """Return R = α·(v_i·v_j) + (1 − α)·(q·w), from both products (paper, equation 2)."""
    return alpha * alike + (1 - alpha) * along


def least_cosine(alike: float, length: float, *, alpha: float, strong: float) -> float:
    """Return the cosine of question and trail above which a trail of this length is strong (equation 2 for R > λ)."""
    weight = (1 - alpha) * length
    return (strong - alpha * alike) / weight if weight else float("inf")


LEARNT_ONCE = delta(0)
"""The length of a trail after one learning."""


def widest_angle(strong: float, *, dimensions: int) -> float:
    """Return the largest angle, in radians, between two questions that one trail serves (paper, equation 3).

    θ ≤ 2·arcsin(√((d + 1) / 2d) · sin(arccos λ)).
    """
    return 2 * asin(min(1.0, sqrt((dimensions + 1) / (2 * dimensions)) * sin(acos(strong))))
