"""Sentence ranking: word overlap selects candidates, which are then embedded."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hgmem.models.embedding import Vectors
from hgmem.models.extractive.key_phrases import stems
from hgmem.models.extractive.sentences import Passage
from hgmem.models.extractive.vector_cache import VectorCache

_WORDS = 0.6
_AROUND = 0.5
_LATER_QUERIES = 0.9
_BRIDGE = 0.25
_BRIDGED = 2
_BELOW_BEST = 0.95
_RARE = 3


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with its score in about [0, 1], its vector and the index of its nearest query."""

    passage: Passage
    score: float
    vector: Vectors
    query: int


def rank(
    found: Sequence[Passage],
    queries: Sequence[str],
    vectors: VectorCache,
    *,
    limit: int,
    prior: Mapping[Passage, float],
) -> list[Ranked]:
    """Return the `limit` passages nearest to `queries`, best first. The first query weighs most.

    `prior` maps passages to additions to their scores.
    """
    if not found:
        return []
    shared = _shared(found, queries)
    order = sorted(range(len(found)), key=lambda at: (-max(shared[at]) - prior.get(found[at], 0.0), at))[:limit]
    near = vectors.of([found[at].text for at in order]) @ vectors.of(queries, kind="query").T
    fresh = vectors.of([found[at].text for at in order])
    ranked = []
    for row, at in enumerate(order):
        scores = [
            ((1 - _WORDS) * float(near[row, column]) + _WORDS * shared[at][column]) * (_LATER_QUERIES if column else 1)
            for column in range(len(queries))
        ]
        query = max(range(len(scores)), key=scores.__getitem__)
        ranked.append(Ranked(found[at], scores[query] + prior.get(found[at], 0.0), fresh[row], query))
    return sorted(ranked, key=lambda each: (-each.score, each.passage.chunk, each.passage.at))


def bridge(ranked: Sequence[Ranked], named: Callable[[str], Iterable[str]]) -> list[Ranked]:
    """Return `ranked` with passages moved up that share a rare name with the nearest ones, for two-hop questions.

    The second hop may be described in a passage that shares only a name with the first. `named` returns the names in a
    text. A name in more than a few passages does not count.
    """
    held = [frozenset(name.casefold() for name in named(each.passage.text)) for each in ranked]
    frequency = Counter(name for names in held for name in names)
    lifted = list(ranked)
    for at, names in enumerate(held):
        shared = [
            ranked[other].score / (frequency[name] - 1)
            for other in range(min(at, _BRIDGED))
            for name in names & held[other]
            if frequency[name] <= _RARE
        ]
        if shared:
            score = min(ranked[at].score + _BRIDGE * max(shared), _BELOW_BEST * ranked[0].score)
            lifted[at] = replace(ranked[at], score=max(ranked[at].score, score))
    return sorted(lifted, key=lambda each: (-each.score, each.passage.chunk, each.passage.at))


def _shared(found: Sequence[Passage], queries: Sequence[str]) -> list[list[float]]:
    """Return for each passage and query the share of the query's words in the passage, weighted by rarity.

    Words of neighbouring sentences weigh less: they resolve pronouns.
    """
    frequency = Counter(stem for passage in found for stem in passage.stems)
    wanted = [sorted(set(stems(query))) for query in queries]
    weight = {stem: math.log(1 + len(found) / (1 + frequency[stem])) for row in wanted for stem in row}
    totals = [sum(weight[stem] for stem in row) or 1.0 for row in wanted]
    return [
        [
            sum(weight[stem] * _held(stem, passage) for stem in row) / total
            for row, total in zip(wanted, totals, strict=True)
        ]
        for passage in found
    ]


def _held(stem: str, passage: Passage) -> float:
    if stem in passage.stems:
        return 1.0
    return _AROUND if stem in passage.around else 0.0
