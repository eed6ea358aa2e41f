"""What the packages that append Cypher to a search of Neo4j append alike, and what comes back of it."""

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphs import Found

MOST = 5  # of each kind that a sub-query finds
PROPOSED = 200  # chunks that the full-text index proposes, those of other corpora among them

logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)  # what a server remarks on statements costs time


class Names:
    """Labels, types of relationships and indexes of one system; `id` is the property that holds a chunk's id."""

    def __init__(self, system: str, *, id: str) -> None:  # noqa: A002
        self.entity, self.chunk = f"{system}_Entity", f"{system}_Chunk"
        self.tie, self.source = f"{system}_TIE", f"{system}_SOURCE"
        self.entities, self.chunks, self.words = (f"{system}_{kind}" for kind in ("entities", "chunks", "words"))
        self.id = id

    @property
    def around(self) -> str:
        """Cypher from `found` entities to the `ties` and the `sources` at them that are nearest to $query_vector."""
        return f"""
CALL (found) {{
  UNWIND found AS e MATCH (e)-[r:{self.tie}]-() WITH DISTINCT r
  WITH r, vector.similarity.cosine(r.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(r {{.description, .keywords, .weight, source: startNode(r).name, target: endNode(r).name}}) AS ties
}}
CALL (found) {{
  UNWIND found AS e MATCH (e)-[:{self.source}]->(c:{self.chunk}) WITH DISTINCT c
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(c {{id: c.{self.id}, .text, score}}) AS sources
}}"""

    @property
    def matching(self) -> str:
        """Cypher to the chunks of $corpus that hold $words, as `matching`."""
        return f"""
CALL () {{
  CALL db.index.fulltext.queryNodes('{self.words}', $words, {{limit: {PROPOSED}}}) YIELD node AS c, score AS weight
  WHERE c.corpus = $corpus
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score, weight ORDER BY weight DESC LIMIT {MOST}
  RETURN collect(c {{id: c.{self.id}, .text, score}}) AS matching
}}"""


def words(text: str) -> str:
    """Return what the full-text index is asked for: any of the words."""
    return " ".join(re.findall(r"\w+", text.lower()))


def found(rows: Iterable[Mapping[str, Any]]) -> Found:
    """Return what all sub-queries brought: chunks nearest first, by the best score that one has."""
    entities, ties, scores = set(), set(), {}
    for row in rows:
        entities |= {entity["name"] for entity in row.get("entities", ())}
        ties |= {(tie["source"], tie["target"]) for tie in row.get("ties", ())}
        for chunk in row["chunks"]:
            scores[chunk["id"]] = max(chunk["score"], scores.get(chunk["id"], 0.0))
    chunks = sorted(scores, key=lambda chunk: -scores[chunk])
    return Found(entities=tuple(sorted(entities)), relations=len(ties), chunks=tuple(chunks))
