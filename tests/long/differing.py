"""Differences between two dumps of a corpus, line by line, with an optional tolerance for vectors."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from dumping import Dump

Node: TypeAlias = tuple[list[str], dict[str, Any]]

SHOWN = 40  # reported lines
WIDTH = 160


def differences(wanted: Dump, found: Dump, *, tolerance: float = 0.0) -> list[str]:
    """Return a line for each item in only one of the graphs (`-` wanted, `+` found), or with differences (`~`)."""
    found = snapped(wanted, found, tolerance) if tolerance else found
    lines = []
    for uid in sorted(wanted.nodes.keys() | found.nodes.keys()):
        before, after = wanted.nodes.get(uid), found.nodes.get(uid)
        if before and after:
            lines += _changes(uid, before, after)
        elif one := before or after:
            lines.append(f"{'-' if before else '+'} {'/'.join(one[0])} {uid} {_short(_named(one[1]))}")
    for sign, counted in (
        ("-", wanted.relationships - found.relationships),
        ("+", found.relationships - wanted.relationships),
    ):
        lines += [f"{sign} {times} x {_short(one)}" for one, times in sorted(counted.items())]
    return lines


def shown(lines: list[str]) -> list[str]:
    """Return the first lines and the number of further ones."""
    return [*lines[:SHOWN], *([f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]


def snapped(wanted: Dump, found: Dump, tolerance: float) -> Dump:
    """Return the found graph, with wanted vectors in place of near-equal ones: a network's sums vary with the batch."""
    vectors = {uid: node["embedding"] for uid, (_, node) in wanted.nodes.items() if "embedding" in node}
    for relationship in wanted.relationships:
        *_, properties = json.loads(relationship)
        if "embedding" in properties:
            vectors[properties["uid"]] = properties["embedding"]

    def snap(properties: dict[str, Any]) -> dict[str, Any]:
        near = vectors.get(properties.get("uid", ""))
        mine = properties.get("embedding")
        return {**properties, "embedding": near} if near and mine and _near(near, mine, tolerance) else properties

    relationships: Counter[str] = Counter()
    for relationship, times in found.relationships.items():
        *ends, properties = json.loads(relationship)
        relationships[json.dumps([*ends, snap(properties)])] += times
    return Dump(
        nodes={uid: (labels, snap(node)) for uid, (labels, node) in found.nodes.items()}, relationships=relationships
    )


def _near(one: list[float], other: list[float], tolerance: float) -> bool:
    return len(one) == len(other) and max(abs(a - b) for a, b in zip(one, other, strict=True)) <= tolerance


def _changes(uid: str, before: Node, after: Node) -> list[str]:
    (labels, old), (others, new) = before, after
    lines = [f"~ {uid} labels: {labels} became {others}"] if labels != others else []
    return lines + [
        f"~ {'/'.join(labels)} {uid} {name}: {_short(old.get(name))} became {_short(new.get(name))}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _named(properties: dict[str, Any]) -> object:
    return next((properties[name] for name in ("name", "title", "text") if name in properties), "")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
