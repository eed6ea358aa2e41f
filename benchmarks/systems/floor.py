"""The floor, a hand-written baseline: the plain driver with the best statements we can write for the same evidence.

A property separates corpora within each index. Like a single-purpose program, it has no memory in the database, no
contributions, no leases and no filters by document. It uses `Vector` parameters, auto-commit reads, batches of 1,000
rows, and one statement per step.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import neo4j
import numpy as np
from graphs import Found, Graph, Query, Step, batches, corpus_key, lucene
from neo4j.vector import Vector

BATCH = 1_000
FUSION = 60
SCHEMA = (
    "CREATE CONSTRAINT floor_entity IF NOT EXISTS FOR (n:FloorEntity) REQUIRE n.uid IS UNIQUE",
    "CREATE CONSTRAINT floor_chunk IF NOT EXISTS FOR (n:FloorChunk) REQUIRE n.uid IS UNIQUE",
    "CREATE CONSTRAINT floor_document IF NOT EXISTS FOR (n:FloorDocument) REQUIRE n.uid IS UNIQUE",
    "CREATE FULLTEXT INDEX floor_text IF NOT EXISTS FOR (n:FloorChunk) ON EACH [n.corpus_key, n.text]",
    *(
        f"CREATE VECTOR INDEX {name} IF NOT EXISTS FOR {pattern} ON n.embedding WITH [n.corpus, n.uid] OPTIONS "
        "{indexConfig: {`vector.similarity_function`: 'cosine', `vector.quantization.type`: 'none'}}"
        for name, pattern in (
            ("floor_entity_vector", "(n:FloorEntity)"),
            ("floor_chunk_vector", "(n:FloorChunk)"),
            ("floor_relation_vector", "()-[n:FLOOR_RELATES]-()"),
        )
    ),
)
DOCUMENTS = "UNWIND $rows AS row MERGE (:FloorDocument {uid: row.uid, corpus: $corpus, title: row.title})"
CHUNKS = """CYPHER 25 UNWIND $rows AS row
MATCH (d:FloorDocument {uid: row.document})
CREATE (c:FloorChunk {uid: row.uid, id: row.id, corpus: $corpus, corpus_key: $key, document: row.document,
                      position: row.position, text: row.text, tokens: row.tokens})-[:FLOOR_FROM_DOCUMENT]->(d)
WITH c, row CALL db.create.setNodeVectorProperty(c, 'embedding', row.vector)"""
ENTITIES = """CYPHER 25 UNWIND $rows AS row
CREATE (e:FloorEntity {uid: row.uid, corpus: $corpus, name: row.name, type: row.type, description: row.description})
WITH e, row
CALL (e, row) { UNWIND row.chunks AS uid MATCH (c:FloorChunk {uid: uid}) CREATE (e)-[:FLOOR_FROM_CHUNK]->(c) }
CALL db.create.setNodeVectorProperty(e, 'embedding', row.vector)"""
RELATIONS = """CYPHER 25 UNWIND $rows AS row
MATCH (a:FloorEntity {uid: row.source}), (b:FloorEntity {uid: row.target})
CREATE (a)-[r:FLOOR_RELATES {uid: row.uid, corpus: $corpus, description: row.description, keywords: row.keywords,
                             weight: row.weight, chunks: row.chunks}]->(b)
WITH r, row CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector)"""
NEAREST = """
  CALL (q) {
    MATCH (e:FloorEntity)
    SEARCH e IN (VECTOR INDEX floor_entity_vector FOR q.vector WHERE e.corpus = $corpus LIMIT $over) SCORE AS score
    WITH e, score WHERE NOT e.uid IN $covered
    ORDER BY score DESC LIMIT 5 RETURN collect(e) AS kept
  }"""
AROUND = """
  CALL (q) {
    UNWIND q.targets AS uid MATCH (v:FloorEntity {uid: uid})
    CALL (v) {
      MATCH (v)-[r:FLOOR_RELATES]-(u:FloorEntity) RETURN u ORDER BY r.weight DESC LIMIT 200
      UNION RETURN v AS u
    }
    RETURN collect(DISTINCT u) AS beside
  }
  CALL (q) {
    UNWIND q.scope AS uid MATCH (u:FloorEntity {uid: uid}) RETURN collect(u) AS sharing
  }
  CALL (q, beside, sharing) {
    UNWIND beside + sharing AS e
    WITH DISTINCT e, q WITH e, vector.similarity.cosine(e.embedding, q.vector) AS score
    ORDER BY score DESC LIMIT 5 RETURN collect(e) AS kept
  }"""
STEP = """CYPHER 25 UNWIND $queries AS q
%s
CALL (q, kept) {
  UNWIND kept AS e MATCH (e)-[r:FLOOR_RELATES]-()
  WITH DISTINCT r, q WITH r, vector.similarity.cosine(r.embedding, q.vector) AS score
  ORDER BY score DESC LIMIT 5
  RETURN collect(r {.uid, .description, .keywords, .weight, source: startNode(r).name, target: endNode(r).name})
         AS relations
}
CALL (q, kept) {
  UNWIND kept AS e MATCH (e)-[:FLOOR_FROM_CHUNK]->(c)
  WITH DISTINCT c, q WITH c, vector.similarity.cosine(c.embedding, q.vector) AS score
  ORDER BY score DESC LIMIT 5 RETURN collect(c) AS sources
}
CALL (q) {
  MATCH (c:FloorChunk) SEARCH c IN (VECTOR INDEX floor_chunk_vector FOR q.vector WHERE c.corpus = $corpus LIMIT 100)
  SCORE AS score WITH c ORDER BY score DESC LIMIT 20
  RETURN collect(c) AS near
}
CALL (q) {
  WITH q WHERE q.lucene <> ''
  MATCH (c:FloorChunk) SEARCH c IN (FULLTEXT INDEX floor_text FOR q.lucene LIMIT 20) SCORE AS score
  RETURN collect(c) AS worded
}
CALL (near, worded) {
  UNWIND [hits IN [near, worded] | [i IN range(0, size(hits) - 1) | {c: hits[i], part: 1.0 / (61 + i)}]] AS ranking
  UNWIND ranking AS ranked
  WITH ranked.c AS c, sum(ranked.part) AS weight ORDER BY weight DESC, c.uid LIMIT 5
  RETURN collect(c) AS best
}
WITH kept, relations, sources, best
RETURN [e IN kept | e {.uid, .name, .type, .description}] AS entities, relations,
       [c IN sources | c.uid] AS sources, [c IN best | c.uid] AS best,
       COLLECT { UNWIND sources + best AS c WITH DISTINCT c MATCH (c)-[:FLOOR_FROM_DOCUMENT]->(d)
                 RETURN c {.uid, .id, .document, .position, .text, title: d.title} } AS chunks"""


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect and create the schema."""
        self._driver = neo4j.GraphDatabase.driver(
            place["uri"], auth=(place["username"], place["password"]), notifications_min_severity="OFF"
        )
        with self._driver.session() as session:
            for statement in SCHEMA:
                session.run(f"CYPHER 25 {statement}").consume()
            session.run("CALL db.awaitIndexes(60)").consume()
        return {"neo4j": neo4j.__version__}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that creates the graph, which includes adding keys and vectors."""
        return partial(self._write, graph, corpus)

    def step(self, step: Step) -> Callable[[], Found]:
        """Return the retrieval. The program knows the memory and passes its entities as a parameter."""
        uid = f"{step.corpus} {{}}".format
        covered = sorted({uid(name) for names in step.memory for name in names})
        queries = [_query(query, step, uid) for query in step.queries]
        statement = STEP % (AROUND if step.local else NEAREST)
        parameters = {
            "corpus": step.corpus,
            "covered": covered,
            "over": 100 + len(covered),
            "queries": queries,
        }

        def retrieved() -> Found:
            with self._driver.session(default_access_mode=neo4j.READ_ACCESS) as session:
                rows = [record.data() for record in session.run(statement, parameters)]
            return _found(rows)

        return retrieved

    def close(self) -> None:
        """Disconnect."""
        self._driver.close()

    def _write(self, graph: Graph, corpus: str) -> None:
        """Create the graph in batches."""
        uid = f"{corpus} {{}}".format
        documents = {one["document"]: {"uid": uid(one["document"]), "title": one["document"]} for one in graph.chunks}
        chunks = [{**one, "uid": uid(one["id"]), "document": uid(one["document"])} for one in graph.chunks]
        entities = [{**one, "uid": uid(one["name"]), "chunks": list(map(uid, one["chunks"]))} for one in graph.entities]
        relations = [
            {
                **one,
                "uid": uid(f"{one['source']} {one['target']}"),
                "source": uid(one["source"]),
                "target": uid(one["target"]),
                "chunks": list(map(uid, one["chunks"])),
            }
            for one in graph.relations
        ]
        with self._driver.session() as session:
            session.run(DOCUMENTS, rows=list(documents.values()), corpus=corpus).consume()
            for statement, kind, rows in (
                (CHUNKS, "chunks", chunks),
                (ENTITIES, "entities", entities),
                (RELATIONS, "relations", relations),
            ):
                vectors = [Vector.from_numpy(vector) for vector in np.ascontiguousarray(graph.vectors[kind])]
                both = [{**row, "vector": vector} for row, vector in zip(rows, vectors, strict=True)]
                for batch in batches(both, BATCH):
                    session.run(statement, rows=batch, corpus=corpus, key=corpus_key(corpus)).consume()


def _query(query: Query, step: Step, uid: Callable[[str], str]) -> dict[str, Any]:
    sharing = {name for names in step.memory if set(names) & set(query.entities) for name in names}
    return {
        "vector": Vector.from_numpy(np.ascontiguousarray(query.vector)),
        "lucene": lucene(query, step.corpus),
        "targets": [uid(name) for name in query.entities],
        "scope": sorted(map(uid, sharing)),
    }


def _found(rows: list[dict[str, Any]]) -> Found:
    """Return the results, with each query's chunks fused: those of the entities, and the five best of both searches."""
    entities: dict[str, Any] = {}
    relations: dict[str, Any] = {}
    chunks: dict[str, Any] = {}
    for row in rows:
        entities |= {one["uid"]: one for one in row["entities"]}
        relations |= {one["uid"]: one for one in row["relations"]}
        known = {one["uid"]: one for one in row["chunks"]}
        chunks |= {uid: known[uid] for uid in _fused(row["sources"], row["best"])}
    return Found(
        entities=tuple(one["name"] for one in entities.values()),
        relations=len(relations),
        chunks=tuple(chunk["id"] for chunk in chunks.values()),
    )


def _fused(*rankings: Iterable[str]) -> list[str]:
    weights: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, uid in enumerate(ranking, start=1):
            weights[uid] += 1 / (FUSION + rank)
    return sorted(weights, key=lambda uid: (-weights[uid], uid))
