"""Measure how much recall a corpus loses beside near-copies of its entities and chunks, by over-fetch."""

import argparse
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import neo4j
import numpy as np
from running import access, running

from hgmem import HGMem
from hgmem.graph.full_text import Ranking, Texts, searched_words
from hgmem.graph.retrieval import Query, QueryHits, Scope, near_chunks, retrieve
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.models.embedding import Embedder, TextKind, Vectors
from hgmem.retrieval.step_evidence import CANDIDATES, PROPOSED, SCORED, RetrievalConfig, Scene, _limits
from hgmem.sources.lightrag import read_lightrag
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Given

K = 20
OVER = (20, 40, 60, 100, 200)
MARKS = tuple(f"marker{letter}" for letter in "bcdefghij")  # one per copy; the texts of the measured corpus have none
_MARK = re.compile(r" marker[b-j]\b")
_VECTORS = """
MATCH (n:Entity|Chunk {corpus: $corpus}) WHERE coalesce(n.memory, '') = ''
RETURN n.uid AS uid, n:Entity AS entity, n.embedding AS vector
"""


class NearEmbedder:
    """Returns another embedder's vectors; a text with a marker gets the vector of the text without it, plus noise."""

    name = "near"

    def __init__(self, embedder: Embedder, *, noise: float = 0.05) -> None:
        self.noise = noise  # length of the noise added to a vector of length 1
        self._embedder = embedder
        self._known: dict[tuple[str, TextKind], Vectors] = {}

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, always the same for the same text."""
        plain = [_MARK.sub("", text) for text in texts]
        fresh = list(dict.fromkeys(text for text in plain if (text, kind) not in self._known))
        for text, vector in zip(fresh, self._embedder.embed(fresh, kind=kind), strict=True):
            self._known[text, kind] = vector
        moved = [
            self._known[bare, kind] + (self._moved(text) if text != bare else 0.0)
            for text, bare in zip(texts, plain, strict=True)
        ]
        vectors = np.asarray(moved, dtype=np.float32).reshape(len(texts), self.dimensions)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def _moved(self, text: str) -> Any:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        moved = np.random.default_rng(seed).normal(size=self.dimensions)
        return self.noise * moved / np.linalg.norm(moved)


def marked(given: Given, mark: str) -> Given:
    """Return a near-copy: each name and description contains the marker, each text contains it three times."""

    def said(text: str) -> str:
        words = text.split(" ")
        for place in (3, 2, 1):
            at = place * len(words) // 4
            words[at] += f" {mark}"
        return " ".join(words)

    return Given(
        documents=tuple(
            replace(one, id=f"{one.id} {mark}", title=f"{one.title} {mark}", text=mark) for one in given.documents
        ),
        chunks=tuple(
            replace(one, document=f"{one.document} {mark}", text=said(one.text), start=None) for one in given.chunks
        ),
        entities=tuple(
            replace(one, name=f"{one.name} {mark}", description=f"{one.description} {mark}") for one in given.entities
        ),
        relations=tuple(
            replace(one, source=f"{one.source} {mark}", target=f"{one.target} {mark}") for one in given.relations
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The part of the exact K nearest that was found: entities and chunks of a step, chunks of plain retrieval.

    `worded` are the hits (uids) of each query by its words where all proposals are ranked, and `scored` where the first
    are, as in a step.
    """

    entities: float
    searched: float
    chunks: float
    worded: tuple[tuple[str, ...], ...]
    scored: tuple[tuple[str, ...], ...]


def recall(client: HGMem, texts: Sequence[str], *, over: int) -> Recall:
    """Return the recall of the nearest items for the texts, within the client's corpus."""
    database, corpus = client._database, client.corpus
    scope = Scope(corpus=corpus)
    with _driver(client) as driver:
        rows = driver.execute_query(_VECTORS, corpus=corpus).records
    stored = {kind: {row["uid"]: row["vector"] for row in rows if row["entity"] == kind} for kind in (True, False)}
    queries = client.embedder.embed(texts, kind="query")
    found, scored = [
        [
            one
            for at in range(0, len(texts), 10)
            for one in _searched(client, dict(list(enumerate(texts))[at : at + 10]), queries, ranking, over=over)
        ]
        for ranking in (
            Ranking(k=CANDIDATES, over=PROPOSED),
            Ranking(k=CANDIDATES, over=PROPOSED, scored=SCORED * CANDIDATES),
        )
    ]
    plain = [
        [chunk.uid for chunk, _ in near_chunks(database, scope=scope, query=query, k=K, over=over)] for query in queries
    ]
    return Recall(
        entities=_mean(stored[True], queries, (one.entities for one in found)),
        searched=_mean(stored[False], queries, (one.near for one in found)),
        chunks=_mean(stored[False], queries, plain),
        worded=tuple(one.matching for one in found),
        scored=tuple(one.matching for one in scored),
    )


def _searched(
    client: HGMem, texts: Mapping[int, str], vectors: Vectors, ranking: Ranking, *, over: int
) -> Sequence[QueryHits]:
    database, scope = client._database, Scope(corpus=client.corpus)
    words = searched_words(database, scope=scope, layers=[Texts(texts=texts)], ranking=ranking)
    asked = [Query(number=number, vector=vectors[number], search="index") for number in texts]
    return retrieve(database, scope=scope, queries=asked, words=words, limits=limits(over)).found


def common(before: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> float:
    """Return the mean part of earlier hits that are found now."""
    parts = [len({*one} & {*other}) / len(one) for one, other in zip(before, now, strict=True) if one]
    return float(np.mean(parts))


def limits(over: int) -> dict[str, Any]:
    """Return limits that give the K nearest entities and chunks, and little else."""
    config = RetrievalConfig(entities=K, relations=0, chunks=0, searched_chunks=0, exclude=False)
    usual = _limits(Scene(scope=Scope(corpus=""), covered=0, entities=0), config)
    return {**usual, "overfetch": over, "overfetch_chunks": over}


def _mean(stored: Mapping[str, Sequence[float]], queries: Vectors, found: Iterable[Iterable[str]]) -> float:
    """Return the mean recall; items as near as the K-th count as found."""
    matrix = np.asarray(list(stored.values()), dtype=np.float64)
    rows = {uid: row for row, uid in enumerate(stored)}
    parts = []
    for query, uids in zip(queries, found, strict=True):
        scores = matrix @ query
        worst = np.sort(scores)[-min(K, len(scores))] - 1e-6
        own = [rows[uid] for uid in uids if uid in rows]
        parts.append(sum(scores[row] >= worst for row in own) / min(K, len(scores)))
    return float(np.mean(parts))


def _driver(client: HGMem) -> neo4j.Driver:
    address = client._database.address
    return neo4j.GraphDatabase.driver(address.uri, auth=(address.username, address.password))


def main() -> None:
    """Print one JSON object: recall by the number of corpora and by over-fetch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True)
    parser.add_argument("--embedder", choices=("deterministic", "real"), default="real")
    parser.add_argument("--queries", type=int, default=60)
    options = parser.parse_args()
    inner = SentenceTransformerEmbedder() if options.embedder == "real" else DeterministicEmbedder(384)
    embedder, given = NearEmbedder(inner), replace(read_lightrag(options.lightrag), relations=())
    texts = [one.description for one in given.entities[:: max(1, len(given.entities) // options.queries)]]
    with running() as (server, _), HGMem.open("mine", embedder=embedder, **access(server)) as client:
        client.add_graph(given)
        alone = {over: recall(client, texts, over=over) for over in OVER}
        for mark in MARKS:
            client.add_graph(marked(given, mark), corpus=mark)
        amid = {over: recall(client, texts, over=over) for over in OVER}
    table = {"1 corpus": by_over(alone, alone), "10 corpora": by_over(alone, amid)}
    print(json.dumps({"queries": len(texts), "k": K, "noise": embedder.noise, **table}, indent=2))


def by_over(alone: Mapping[int, Recall], found: Mapping[int, Recall]) -> dict[int, dict[str, float]]:
    """Return the recall of each over-fetch, and the part of what words find alone that they find now."""
    return {
        over: {
            **{name: round(getattr(one, name), 4) for name in ("entities", "searched", "chunks")},
            **{name: round(common(getattr(alone[over], name), getattr(one, name)), 4) for name in ("worded", "scored")},
        }
        for over, one in found.items()
    }


if __name__ == "__main__":
    main()
