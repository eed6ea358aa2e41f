"""Which points belong together: those that share entities and cover more of the question than each alone."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from hgmem.models.extractive.key_phrases import stems
from hgmem.models.extractive.question_aspects import aspects
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.systems.hgmem.replies import Joining, MergeReply
from hgmem.text.segmentation import collapse, sentences
from hgmem.values.records import MemoryPoint

_LONGEST = 900
_MOST_TIES = 14
_MOST_PARTS = 3
_MERGES = 3
_WORTH = 0.5


def merge(question: str, points: Sequence[MemoryPoint], *, vectors: VectorCache) -> MergeReply:
    """Return the merges worth making, best first, with each point in one at most."""
    if len(points) < 2:
        return MergeReply()
    board = _Board(question, points, vectors)
    groups: list[list[int]] = []
    for pair in board.pairs():
        if len(groups) == _MERGES:
            break
        if not any(at in group for group in groups for at in pair):
            groups.append(board.widened(pair, taken={at for group in groups for at in group}))
    return MergeReply(
        merge=tuple(
            Joining(points=tuple(group), description=joined([points[at].description for at in group]))
            for group in groups
        )
    )


def joined(texts: Sequence[str]) -> str:
    """Return the sentences of `texts` in order, each once, as one text of limited length."""
    parts: list[str] = []
    for text in texts:
        for span in sentences(text):
            part = collapse(text[span.start : span.end])
            if part not in parts and len(part) + sum(map(len, parts)) < _LONGEST:
                parts.append(part)
    return " ".join(parts)


class _Board:
    """What each point ties and covers, and what two of them would gain together."""

    def __init__(self, question: str, points: Sequence[MemoryPoint], vectors: VectorCache) -> None:
        texts = [point.description for point in points]
        self._lengths = [len(text) for text in texts]
        self._ties = [frozenset(entity.name for entity in point.entities) for point in points]
        self._popularity = Counter(name for ties in self._ties for name in ties)
        said = [set(stems(f"{point.description} {' '.join(self._ties[at])}")) for at, point in enumerate(points)]
        wanted = aspects(question)
        self._covers = [frozenset(at for at, each in enumerate(wanted) if each.covered_by(row)) for row in said]
        found = vectors.of(texts)
        self._near = found @ found.T
        self._asked = found @ vectors.of([question], kind="query")[0]

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs worth merging, best first."""
        worth = {pair: self._worth(pair) for pair in combinations(range(len(self._ties)), 2)}
        good = [pair for pair in worth if worth[pair] >= _WORTH]
        return sorted(good, key=lambda pair: (-worth[pair], pair))

    def widened(self, pair: tuple[int, int], *, taken: set[int]) -> list[int]:
        """Return the pair with a further point that belongs to both, in the order of the points."""
        group = list(pair)
        for at in range(len(self._ties)):
            if len(group) == _MOST_PARTS:
                break
            fits = at not in taken and at not in group and self._fits([*group, at])
            if fits and min(self._worth((at, other)) for other in group) >= _WORTH:
                group.append(at)
        return sorted(group)

    def _worth(self, pair: tuple[int, int]) -> float:
        """Return how much two points belong together, 0 where they share no entity or would be too long."""
        one, other = pair
        shared = self._ties[one] & self._ties[other]
        if not shared or not self._fits(pair):
            return 0.0
        # An entity of nearly every point ties nothing in particular.
        rare = sum(1.0 / self._popularity[name] for name in sorted(shared))
        smaller = min(len(self._ties[one]), len(self._ties[other]))
        gain = bool(self._covers[one] - self._covers[other] and self._covers[other] - self._covers[one])
        relevant = float(np.sqrt(max(self._asked[one], 0.0) * max(self._asked[other], 0.0)))
        return (
            0.5 * float(self._near[one, other])
            + 0.3 * len(shared) / smaller
            + 0.2 * min(rare, 1.0)
            + 0.25 * gain * relevant
        )

    def _fits(self, group: Sequence[int]) -> bool:
        ties = frozenset[str]().union(*(self._ties[at] for at in group))
        return len(ties) <= _MOST_TIES and sum(self._lengths[at] for at in group) <= _LONGEST
