"""The Cypher that adapters append to a package's search of Neo4j, and the conversion of its results."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from graphs import Found

MOST = 5  # results of each kind per sub-query
CANDIDATES = 20  # chunks of each of the two fused rankings
INDEXED = ("corpus_key", "text")  # properties of a chunk in its full-text index

logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)  # logging the server's notifications costs time


class Names:
    """Labels, relationship types and indexes of one system; `id` is the property with a chunk's id."""

    def __init__(self, system: str, *, id: str) -> None:  # noqa: A002
        self.entity, self.chunk = f"{system}_Entity", f"{system}_Chunk"
        self.tie, self.source = f"{system}_TIE", f"{system}_SOURCE"
        self.entities, self.chunks, self.words = (f"{system}_{kind}" for kind in ("entities", "chunks", "words"))
        self.id = id

    @property
    def around(self) -> str:
        """Cypher from `found` entities to their `ties` and `sources` (nodes) nearest to $query_vector."""
        return f"""
CALL (found) {{
  UNWIND found AS e MATCH (e)-[r:{self.tie}]-() WITH DISTINCT r
  WITH r, vector.similarity.cosine(r.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(r {{.description, .keywords, .weight, source: startNode(r).name, target: endNode(r).name}}) AS ties
}}
CALL (found) {{
  UNWIND found AS e MATCH (e)-[:{self.source}]->(c:{self.chunk}) WITH DISTINCT c
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(c) AS sources
}}"""

    @property
    def fused(self) -> str:
        """Cypher from the nodes `near` $query_vector to the `best` of these and of the nodes that $lucene finds."""
        return f"""
CALL () {{
  WITH $lucene AS words WHERE words <> ''
  CALL db.index.fulltext.queryNodes('{self.words}', words, {{limit: {CANDIDATES}}}) YIELD node AS c, score
  WITH c, score ORDER BY score DESC
  RETURN collect(c) AS worded
}}
CALL (near, worded) {{
  UNWIND [hits IN [near, worded] | [i IN range(0, size(hits) - 1) | {{c: hits[i], part: 1.0 / (61 + i)}}]] AS ranking
  UNWIND ranking AS ranked
  WITH ranked.c AS c, sum(ranked.part) AS weight ORDER BY weight DESC, c.{self.id} LIMIT {MOST}
  RETURN collect(c) AS best
}}"""

    def told(self, nodes: str) -> str:
        """Return a Cypher expression for a list of these chunks' results, each chunk once."""
        return f"""COLLECT {{
  UNWIND {nodes} AS c WITH DISTINCT c
  RETURN c {{id: c.{self.id}, .text, score: vector.similarity.cosine(c.embedding, $query_vector)}}
}}"""


def found(rows: Iterable[Mapping[str, Any]]) -> Found:
    """Return the results of all sub-queries, with chunks ordered by their best score."""
    entities, ties, scores = set(), set(), {}
    for row in rows:
        entities |= {entity["name"] for entity in row.get("entities", ())}
        ties |= {(tie["source"], tie["target"]) for tie in row.get("ties", ())}
        for chunk in row["chunks"]:
            scores[chunk["id"]] = max(chunk["score"], scores.get(chunk["id"], 0.0))
    chunks = sorted(scores, key=lambda chunk: -scores[chunk])
    return Found(entities=tuple(sorted(entities)), relations=len(ties), chunks=tuple(chunks))
