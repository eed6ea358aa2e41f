"""Typed wrappers for `cypher/built_search.cypher`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.lucene import lucene, telling, terms
from hgmem.graph.retrieval import Scope
from hgmem.graph.values import Runner, vector
from hgmem.text.identity import layer_key


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
    """Return the k rows that fit a text's words best, each with its BM25 score in its layer."""
    scope = layer.scope
    words = lucene(
        telling(terms(text)),
        corpus=scope.corpus,
        layer=layer_key(scope.corpus, layer.system, layer.kind),
        documents=scope.uids,
    )
    if not words:
        return []
    rows = database.run("worded_built", corpus=scope.corpus, documents=scope.uids, lucene=words, k=k)
    return [(row["row"], row["score"]) for row in rows]


def chunks_beneath(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the chunks that it rests on at any distance, in order of place."""
    return {row["uid"]: row["chunks"] for row in database.run("chunks_beneath", corpus=corpus, uids=list(uids))}


def nearest_beneath(database: Runner, *, corpus: str, uids: Sequence[str], query: Any, k: int) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the k chunks nearest to a unit vector among those that the row rests on."""
    rows = database.run("nearest_beneath", corpus=corpus, uids=list(uids), vector=vector(query), k=k)
    return {row["uid"]: row["chunks"] for row in rows}
