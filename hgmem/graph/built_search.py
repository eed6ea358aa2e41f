"""Typed wrappers for `cypher/built_search.cypher`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.full_text import Ranking, as_indexed, searched_words
from hgmem.graph.lucene import lucene
from hgmem.graph.retrieval import Scope
from hgmem.graph.values import Runner, vector
from hgmem.text.identity import layer_key

OVER, K1, B = 10_000, 1.5, 0.75  # rows that the full-text index proposes, and parameters of BM25, as of system bm25


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Where built rows are searched: one kind of a system, within a scope."""

    scope: Scope
    system: str
    kind: str


def near_built(database: Runner, *, layer: Layer, query: Any, k: int, over: int) -> list[tuple[Row, float]]:
    """Return the k rows nearest to a unit vector, each with its cosine. The index proposes `over` of them."""
    rows = database.run(
        "near_built",
        corpus=layer.scope.corpus,
        system=layer.system,
        kind=layer.kind,
        documents=layer.scope.uids,
        vector=vector(query),
        k=k,
        over=max(k, over),
    )
    return [(row["row"], row["score"]) for row in rows]


def worded_built(database: Runner, *, layer: Layer, text: str, k: int) -> list[tuple[Row, float]]:
    """Return the k rows that fit a text's words best, each with its BM25 score, which counts its layer alone."""
    scope, wanted = layer.scope, searched_words(text)
    query = lucene(
        as_indexed(wanted),
        corpus=scope.corpus,
        layer=layer_key(scope.corpus, layer.system, layer.kind),
        documents=scope.uids,
    )
    if not query:
        return []
    rows = database.run(
        "worded_built",
        corpus=scope.corpus,
        system=layer.system,
        kind=layer.kind,
        documents=scope.uids,
        lucene=query,
        words=wanted,
        ranking=asdict(Ranking(k=k, over=max(k, OVER), k1=K1, b=B)),
    )
    return [(row["row"], row["score"]) for row in rows]


def chunks_beneath(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the chunks that it rests on at any distance, in order of place."""
    return {row["uid"]: row["chunks"] for row in database.run("chunks_beneath", corpus=corpus, uids=list(uids))}


def nearest_beneath(database: Runner, *, corpus: str, uids: Sequence[str], query: Any, k: int) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the k chunks nearest to a unit vector among those that the row rests on."""
    rows = database.run("nearest_beneath", corpus=corpus, uids=list(uids), vector=vector(query), k=k)
    return {row["uid"]: row["chunks"] for row in rows}
