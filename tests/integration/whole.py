"""Checks after a fault: memories contain whole steps, and the corpus is unchanged."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from dumping import Dump


def corpus_layer(found: Dump) -> Dump:
    """Return the part of a dump that questions must not change."""
    nodes = {uid: node for uid, node in found.nodes.items() if not node[1].get("memory")}
    kept: Counter[str] = Counter()
    for relationship, times in found.relationships.items():
        _, source, target, properties = json.loads(relationship)
        if source in nodes and target in nodes and not properties.get("memory"):
            kept[relationship] += times
    return Dump(nodes=nodes, relationships=kept)


def whole_steps(found: Dump, memory: str) -> int:
    """Check that a memory contains only whole steps, each once; return their number."""
    steps = {step["number"]: (uid, step) for uid, step in _of(found, "Step", memory).items()}
    held = Counter(target for source, target, _ in found.joined("HAS_STEP") if source == memory)
    assert held == Counter({uid: 1 for uid, _ in steps.values()})
    assert sorted(steps) == list(range(1, len(steps) + 1))
    follows = {(source, target) for source, target, _ in found.joined("NEXT_STEP")}
    assert {(steps[here][0], steps[after][0]) for here, after in pairwise(sorted(steps))} <= follows
    for number, (uid, step) in steps.items():
        _check_asked(found, uid)
        _check_operations(found, memory, number=number, operations=json.loads(step["operations"]))
    points = _of(found, "MemoryPoint", memory)
    assert {point["born"] for point in points.values()} <= steps.keys()
    assert {target for source, target, _ in found.joined("HAS_POINT") if source == memory} == points.keys()
    return len(steps)


def _check_asked(found: Dump, step: str) -> None:
    asked = [target for source, target, _ in found.joined("ASKED") if source == step]
    assert sorted(found.nodes[uid][1]["number"] for uid in asked) == list(range(1, len(asked) + 1))
    ranks: dict[tuple[str, str], list[int]] = {}
    for source, target, hit in found.joined("RETRIEVED"):
        if source in asked:
            kind = "Chunk" if "Chunk" in found.nodes[target][0] else "Entity"
            ranks.setdefault((source, kind), []).append(hit["rank"])
    assert ranks
    for each in ranks.values():
        assert sorted(each) == list(range(1, len(each) + 1))


def _check_operations(found: Dump, memory: str, *, number: int, operations: list[dict[str, Any]]) -> None:
    """Check that a step's recorded operations match the data: births, deaths, successors, entities, vectors."""
    points = _of(found, "MemoryPoint", memory)
    done = [one for one in operations if one["kind"] != "drop"]
    born = {uid for uid, point in points.items() if point["born"] == number}
    assert born == {one["point"] for one in done}
    assert {uid for uid, point in points.items() if point.get("died") == number} == {
        part for one in done for part in one["parts"]
    }
    for kind, relationship in (("revise", "REVISED_AS"), ("merge", "MERGED_INTO")):
        became = {(source, target) for source, target, _ in found.joined(relationship) if target in born}
        assert became == {(part, one["point"]) for one in done if one["kind"] == kind for part in one["parts"]}
    involving = {source for source, *_ in found.joined("INVOLVES")}
    assert born <= involving
    assert all("embedding" in points[uid] for uid in born)


def _of(found: Dump, label: str, memory: str) -> dict[str, dict[str, Any]]:
    return {uid: node for uid, node in found.of(label).items() if node["memory"] == memory}
