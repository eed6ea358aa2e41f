"""A graph of random vectors for the compared systems of the benchmarks, in their common format on disk."""

import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from graphs import KINDS, Graph, Query, save

CHUNKS, ENTITIES, RELATIONS, SIZE = 30, 60, 80, 384


def write(folder: Path) -> None:
    """Write a graph, and for each of its first chunks a query with a near vector and the chunk's own words."""
    draw, chance = np.random.default_rng(5), Random(5)
    words = ["".join(chance.choices(("ba", "ke", "li", "mo", "nu", "ra", "se", "ti"), k=3)) for _ in range(200)]
    pairs = chance.sample([(one, other) for one in range(ENTITIES) for other in range(one)], RELATIONS)

    def say(length: int) -> str:
        return " ".join(chance.choices(words, k=length))

    made = Graph(
        chunks=[
            {"id": f"c{at}", "document": f"d{at // 10}", "position": at % 10, "text": say(12), "tokens": 12}
            for at in range(CHUNKS)
        ],
        entities=[
            {"name": f"Entity {at}", "type": "Person", "description": say(6), "chunks": [f"c{at % CHUNKS}"]}
            for at in range(ENTITIES)
        ],
        relations=[
            {"source": f"Entity {one}", "target": f"Entity {other}", "description": say(4),
             "keywords": say(2).split() if one % 2 else say(2), "weight": 1.0, "chunks": [f"c{one % CHUNKS}"]}
            for one, other in pairs
        ],
        vectors=dict(zip(KINDS, (_unit(draw, ENTITIES), _unit(draw, RELATIONS), _unit(draw, CHUNKS)), strict=True)),
    )  # fmt: skip
    near = made.vectors["chunks"][:8] + 0.5 * _unit(draw, 8)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    save(folder, made, [Query(text=made.chunks[at]["text"], vector=vector) for at, vector in enumerate(near)])


def _unit(draw: np.random.Generator, rows: int) -> Any:
    vectors = draw.standard_normal((rows, SIZE)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
