"""The graphs for all systems: texts and vectors on disk, and their near-copies, the same for every system.

Runs in the environment of every peer: uses only the standard library and numpy.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = b"2"  # version of the files, part of their folders' names
NOISE = 0.05  # length of the noise added to a copy's vectors
KINDS = ("entities", "relations", "chunks")


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The graph of one corpus. Rows of `vectors[kind]` (float32, unit length) correspond to the lists, in order.

    A chunk: id, document, position, text, tokens. An entity: name, type, description, chunks (ids). A relation: source
    and target (names), description, keywords, weight, chunks (ids).
    """

    chunks: list[dict[str, Any]]
    entities: list[dict[str, Any]]
    relations: list[dict[str, Any]]
    vectors: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A sub-query with its vector, and with its distinctive words for full-text search.

    `entities` (names) are the targets of a local sub-query.
    """

    text: str
    vector: Any
    words: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step in one corpus: around given entities if `local`, else everywhere except at the entities of memory.

    `memory` has the entities (names) of each point of the question's memory.
    """

    corpus: str
    queries: tuple[Query, ...]
    local: bool = False
    memory: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a step: names of entities, the number of relations, and ids of chunks, best first."""

    entities: tuple[str, ...]
    relations: int
    chunks: tuple[str, ...]


class UnsupportedError(Exception):
    """The system does not support the command; the message names the missing feature."""


def load(folder: Path, copy: int = 0) -> Graph:
    """Return the graph of a folder, or its n-th near-copy: other names, other ids, vectors with a little noise."""
    graph = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
    with np.load(folder / "vectors.npz") as stored:
        vectors = {kind: stored[kind] for kind in KINDS}
    if copy:
        graph = _renamed(graph, copy)
        vectors = {kind: _moved(vectors[kind], seed=(copy, place)) for place, kind in enumerate(KINDS)}
    return Graph(**graph, vectors=vectors)


def queries(folder: Path, copy: int = 0) -> list[Query]:
    """Return the sub-queries of a graph; `copy` moves their vectors like the graph's."""
    asked = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    with np.load(folder / "vectors.npz") as stored:
        vectors = stored["queries"]
    if copy:
        vectors = _moved(vectors, seed=(copy, len(KINDS)))
    return [
        Query(text=one["text"], words=tuple(one["words"]), vector=vector)
        for one, vector in zip(asked, vectors, strict=True)
    ]


def steps(
    folder: Path,
    *,
    corpus: str,
    size: int,
    steps: int,
    seed: int,
    points: int = 0,
    of: int = 4,
    local: bool = False,
    copy: int = 0,
) -> list[Step]:
    """Return `steps` steps of `size` sub-queries each, beside memories of `points` points of `of` entities.

    The same arguments give the same steps.
    """
    chance = random.Random(seed)  # noqa: S311
    known = [one["name"] for one in load(folder, copy).entities] if points else []
    asked = queries(folder, copy)
    made = []
    for _ in range(steps):
        held = tuple(tuple(chance.sample(known, of)) for _ in range(points))
        chosen = chance.sample(asked, size)
        if local:
            chosen = [replace(query, entities=chance.choice(held)) for query in chosen]
        made.append(Step(corpus=corpus, queries=tuple(chosen), local=local, memory=held))
    return made


def save(folder: Path, graph: Graph, asked: Sequence[Query]) -> None:
    """Write the files that `load` and `queries` read."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {kind: getattr(graph, kind) for kind in KINDS}
    (folder / "graph.json").write_text(json.dumps(parts), encoding="utf-8")
    texts = [{"text": query.text, "words": query.words} for query in asked]
    (folder / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
    vectors = np.asarray([query.vector for query in asked], dtype=np.float32)
    np.savez(folder / "vectors.npz", queries=vectors, **graph.vectors)


def corpus_key(corpus: str) -> str:
    """Return a corpus's name as one word for a full-text index."""
    return corpus.encode().hex()


def lucene(query: Query, corpus: str) -> str:
    """Return the query for a full-text index of `corpus_key` and `text`: any of the words, in one corpus."""
    if not query.words:
        return ""
    return f"+corpus_key:{corpus_key(corpus)}^0 +({' '.join(f'text:{word}' for word in query.words)})"


def batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield the items, at most `size` at a time."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def _renamed(graph: dict[str, Any], copy: int) -> dict[str, Any]:
    mark = f" {copy}"

    def ids(chunks: Sequence[str]) -> list[str]:
        return [chunk + mark for chunk in chunks]

    return {
        "chunks": [
            {**one, "id": one["id"] + mark, "document": one["document"] + mark, "text": one["text"] + mark}
            for one in graph["chunks"]
        ],
        "entities": [{**one, "name": one["name"] + mark, "chunks": ids(one["chunks"])} for one in graph["entities"]],
        "relations": [
            {**one, "source": one["source"] + mark, "target": one["target"] + mark, "chunks": ids(one["chunks"])}
            for one in graph["relations"]
        ],
    }


def _moved(vectors: Any, *, seed: tuple[int, int]) -> Any:
    noise = np.random.default_rng(seed).standard_normal(vectors.shape, dtype=np.float32)
    moved = vectors + NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
