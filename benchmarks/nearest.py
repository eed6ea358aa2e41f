"""The items nearest to sub-queries by exact cosine, and the recall of a step, which is reported with every time."""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphs import Found, Graph, Query, Step

MOST = 5  # items of each kind per sub-query
KEPT = 20  # items of each graph; more equally near ones are not expected
HUB = 200  # relations of one entity that a local sub-query follows, heaviest first
SAME = 1e-6  # cosines that differ by less are equal
KINDS = {"entities": "name", "chunks": "id"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Items at least as near to a sub-query as its fifth nearest, by kind, without excluded entities."""

    entities: frozenset[str]
    chunks: frozenset[str]


def wanted(steps: Sequence[Step], graphs: Iterable[Graph]) -> list[list[Wanted]]:
    """Return the items that each sub-query of each step should find in a corpus of these graphs, read once."""
    asked = [(step, query) for step in steps for query in step.queries]
    vectors = np.stack([query.vector for _, query in asked])
    best: dict[tuple[int, str], list[tuple[float, str]]] = defaultdict(list)
    for graph in graphs:
        around = _around(graph) if any(step.local for step in steps) else {}
        for kind, key in KINDS.items():
            names = np.asarray([one[key] for one in getattr(graph, kind)], dtype=object)
            scores = vectors @ graph.vectors[kind].T
            for at, (step, query) in enumerate(asked):
                allowed = (
                    scores[at] if kind == "chunks" else _allowed(scores[at], names, step, _scope(query, step, around))
                )
                best[at, kind] += _top(allowed, names)
    nearest = iter(Wanted(**{kind: _fifth(best[at, kind]) for kind in KINDS}) for at in range(len(asked)))
    return [[next(nearest) for _ in step.queries] for step in steps]


def recall(found: Found, wanted: Sequence[Wanted]) -> dict[str, float]:
    """Return the mean share of the nearest entities and chunks of each sub-query that its step found."""
    have = {"entities": {plain(name) for name in found.entities}, "chunks": set(found.chunks)}
    parts: dict[str, list[float]] = defaultdict(list)
    for one in wanted:
        for kind in KINDS:
            near = {plain(name) for name in one.entities} if kind == "entities" else one.chunks
            if near:
                parts[kind].append(min(1.0, len(near & have[kind]) / min(MOST, len(near))))
    return {kind: statistics.mean(each) for kind, each in parts.items()}


def plain(name: str) -> str:
    """Return a name without case and punctuation, which systems write differently."""
    return " ".join(re.findall(r"\w+", name.casefold()))


def _allowed(scores: Any, names: Any, step: Step, scope: set[str]) -> Any:
    """Return the scores of items that a sub-query may find, and minus infinity for the others."""
    if step.local:
        inside = np.asarray([name in scope for name in names], dtype=bool)
    else:
        left_out = {name for names in step.memory for name in names}
        inside = np.asarray([name not in left_out for name in names], dtype=bool)
    return np.where(inside, scores, -np.inf)


def _scope(query: Query, step: Step, around: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the scope of a local sub-query: its entities, related entities, and entities of points with them."""
    own = set(query.entities)
    beside = {name for target in own for name in around.get(target, ())}
    return own | beside | {name for names in step.memory if own & set(names) for name in names}


def _around(graph: Graph) -> dict[str, list[str]]:
    ties: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for one in graph.relations:
        for end, other in ((one["source"], one["target"]), (one["target"], one["source"])):
            ties[end].append((-one["weight"], other))
    return {name: [other for _, other in sorted(found)[:HUB]] for name, found in ties.items()}


def _top(scores: Any, names: Any) -> list[tuple[float, str]]:
    rows = np.argpartition(-scores, min(KEPT, len(scores)) - 1)[:KEPT]
    return [(float(scores[row]), names[row]) for row in rows if np.isfinite(scores[row])]


def _fifth(best: list[tuple[float, str]]) -> frozenset[str]:
    ordered = sorted(best, reverse=True)
    if not ordered:
        return frozenset()
    worst = ordered[min(MOST, len(ordered)) - 1][0] - SAME
    return frozenset(name for score, name in ordered if score >= worst)
