"""LangChain on Neo4j: `Neo4jVector`, with its filter and a query of its own behind the search.

What it does otherwise: `Neo4jGraph.add_graph_documents` needs APOC, so relationships are written by `Neo4jGraph.query`;
its vector indexes know no filters, so a filtered search compares every vector of the corpus; two searches, so two
statements, for each sub-query. Its hybrid search takes no filters, so words are looked up in the query behind the
search of chunks. It keeps no memory: which entities to leave out, the caller says.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from graphs import Found, Graph, Query, Step, UnsupportedError, batches
from langchain_core.embeddings import Embeddings
from langchain_neo4j import Neo4jGraph, Neo4jVector

ENTITY, CHUNK, TIE, SOURCE = "LangChainEntity", "LangChainChunk", "LANGCHAIN_RELATED", "LANGCHAIN_FROM"
ENTITIES, CHUNKS, WORDS = "langchain_entities", "langchain_chunks", "langchain_words"
MOST, PROPOSED = 5, 200
BATCH = 1_000  # what the package itself commits at a time
CREATE_TIES = f"""
UNWIND $rows AS row
MATCH (source:{ENTITY} {{id: row.source}}) MATCH (target:{ENTITY} {{id: row.target}})
MERGE (source)-[r:{TIE}]->(target) SET r += row.properties
WITH r, row CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector)
"""
CREATE_SOURCES = f"""
UNWIND $rows AS row
MATCH (e:{ENTITY} {{id: row.entity}}) MATCH (c:{CHUNK} {{id: row.chunk}})
MERGE (e)-[:{SOURCE}]->(c)
"""
GATHER = f"""
WITH collect(node) AS found
CALL (found) {{
  UNWIND found AS e MATCH (e)-[r:{TIE}]-() WITH DISTINCT r
  WITH r, vector.similarity.cosine(r.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(r {{.description, .keywords, .weight, source: startNode(r).name, target: endNode(r).name}}) AS ties
}}
CALL (found) {{
  UNWIND found AS e MATCH (e)-[:{SOURCE}]->(c:{CHUNK}) WITH DISTINCT c
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(c {{.chunk, .text, score}}) AS sources
}}
RETURN '' AS text, 1.0 AS score,
       {{entities: [e IN found | e {{.name, .type, .text}}], ties: ties, chunks: sources}} AS metadata
"""
SEARCHED = f"""
WITH collect(node {{.chunk, .text, score}}) AS near
CALL () {{
  CALL db.index.fulltext.queryNodes('{WORDS}', $words, {{limit: {PROPOSED}}}) YIELD node AS c, score AS weight
  WHERE c.corpus = $corpus
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score, weight ORDER BY weight DESC LIMIT {MOST}
  RETURN collect(c {{.chunk, .text, score}}) AS matching
}}
RETURN '' AS text, 1.0 AS score, {{chunks: near + matching}} AS metadata
"""


class Nothing(Embeddings):
    """Vectors are given, so nobody asks for any."""

    def embed_query(self, text: str) -> list[float]:
        """Refuse."""
        raise NotImplementedError

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Refuse."""
        raise NotImplementedError


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect."""
        access = {"url": place["uri"], "username": place["username"], "password": place["password"]}
        self._graph = Neo4jGraph(**access, refresh_schema=False)  # which would need APOC
        return {name: version(name) for name in ("langchain-neo4j", "langchain-core", "neo4j-graphrag", "neo4j")}

    def write(self, graph: Graph, corpus: str) -> None:
        """Write nodes by the vector stores, then what lies between them."""
        for kind, label in (("entities", ENTITY), ("chunks", CHUNK)):
            self._graph.query(f"CREATE INDEX {label}_corpus IF NOT EXISTS FOR (n:{label}) ON (n.corpus)")
            rows = [row(one, corpus) for one in getattr(graph, kind)]
            Neo4jVector.from_embeddings(
                list(zip((one["text"] for one in rows), graph.vectors[kind].tolist(), strict=True)),
                metadatas=[one["metadata"] for one in rows],
                ids=[one["id"] for one in rows],
                **self._store(kind, label, size=graph.vectors[kind].shape[1]),
            )
        Neo4jVector(**self._store("chunks", CHUNK, size=1), keyword_index_name=WORDS).create_new_keyword_index()
        vectors = graph.vectors["relations"].tolist()
        self._link(CREATE_TIES, [tie(one, vector, corpus) for one, vector in zip(graph.relations, vectors, strict=True)])
        pairs = [(one["name"], chunk) for one in graph.entities for chunk in one["chunks"]]
        self._link(CREATE_SOURCES, [{"entity": key(name, corpus), "chunk": key(chunk, corpus)} for name, chunk in pairs])
        self._graph.query("CALL db.awaitIndexes()")

    def step(self, step: Step) -> Callable[[], Found]:
        """Return what searches entities and chunks for each sub-query."""
        if step.local:
            raise UnsupportedError("a vector store starts from a search of an index, not from given entities")
        size = len(step.queries[0].vector)
        entities = Neo4jVector(**self._store("entities", ENTITY, size=size), retrieval_query=GATHER)
        chunks = Neo4jVector(**self._store("chunks", CHUNK, size=size), retrieval_query=SEARCHED)
        own: dict[str, Any] = {"corpus": {"$eq": step.corpus}}
        known = sorted({name for point in step.memory for name in point})
        others = own | {"name": {"$nin": known}} if known else own
        asked = [arguments(query, step.corpus) for query in step.queries]

        def retrieve() -> Found:
            at = [entities.similarity_search_by_vector(**one, k=MOST, filter=others)[0].metadata for one in asked]
            anywhere = [chunks.similarity_search_by_vector(**one, k=MOST, filter=own)[0].metadata for one in asked]
            scores = {chunk["chunk"]: chunk["score"] for one in (*at, *anywhere) for chunk in one["chunks"]}
            return Found(
                entities=len({entity["name"] for one in at for entity in one["entities"]}),
                relations=len({(one["source"], one["target"]) for found in at for one in found["ties"]}),
                chunks=tuple(sorted(scores, key=lambda chunk: -scores[chunk])),
            )

        return retrieve

    def close(self) -> None:
        """Close the connections."""
        self._graph.close()

    def _store(self, kind: str, label: str, *, size: int) -> dict[str, Any]:
        name = {"entities": ENTITIES, "chunks": CHUNKS}[kind]
        return {
            "embedding": Nothing(),
            "graph": self._graph,
            "index_name": name,
            "node_label": label,
            "embedding_dimension": size,
        }

    def _link(self, statement: str, rows: Sequence[dict[str, Any]]) -> None:
        for some in batches(rows, BATCH):
            self._graph.query(statement, {"rows": some})


def key(name: str, corpus: str) -> str:
    """Return a node's id: ids are unique by label, so the corpus is in them."""
    return f"{corpus}\n{name}"


def row(one: Mapping[str, Any], corpus: str) -> dict[str, Any]:
    """Return an entity or a chunk as a vector store takes it."""
    if "name" in one:
        said = {"name": one["name"], "type": one["type"]}
        return {"id": key(one["name"], corpus), "text": one["description"], "metadata": {"corpus": corpus, **said}}
    said = {"chunk": one["id"]} | {name: one[name] for name in ("document", "position", "tokens")}
    return {"id": key(one["id"], corpus), "text": one["text"], "metadata": {"corpus": corpus, **said}}


def tie(one: Mapping[str, Any], vector: Sequence[float], corpus: str) -> dict[str, Any]:
    """Return a relation as a row of the statement that writes it."""
    properties = {name: one[name] for name in ("description", "keywords", "weight", "chunks")}
    ends = {"source": key(one["source"], corpus), "target": key(one["target"], corpus)}
    return {**ends, "properties": properties, "vector": vector}


def arguments(query: Query, corpus: str) -> dict[str, Any]:
    """Return what a search is given, but for what differs between entities and chunks."""
    words = " ".join(re.findall(r"\w+", query.text.lower()))
    return {"embedding": query.vector.tolist(), "params": {"corpus": corpus, "words": words}}
