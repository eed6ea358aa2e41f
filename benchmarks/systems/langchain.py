"""LangChain on Neo4j: `Neo4jVector`, with its filter and a custom query after the search.

Differences: `Neo4jGraph.add_graph_documents` needs APOC, so `Neo4jGraph.query` writes relationships. Its vector indexes
have no filters, so a filtered search compares every vector of the corpus. Each sub-query needs two searches, and thus
two statements. Its hybrid search takes no filters, so the query after the search of chunks does the full-text search.
It stores no memory: the caller names the entities to exclude.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from graphs import Found, Graph, Step, UnsupportedError, batches, corpus_key, lucene
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_neo4j import Neo4jGraph, Neo4jVector

from systems._neo4j import CANDIDATES, INDEXED, MOST, Names, found

OWN = Names("langchain", id="chunk")  # a node's own id is unique by label, so it includes the corpus
BATCH = 1_000  # the package's own batch size
CREATE_TIES = f"""
UNWIND $rows AS row
MATCH (source:{OWN.entity} {{id: row.source}}) MATCH (target:{OWN.entity} {{id: row.target}})
MERGE (source)-[r:{OWN.tie}]->(target) SET r += row.properties
WITH r, row CALL db.create.setRelationshipVectorProperty(r, 'embedding', row.vector)
"""
CREATE_SOURCES = f"""
UNWIND $rows AS row
MATCH (e:{OWN.entity} {{id: row.entity}}) MATCH (c:{OWN.chunk} {{id: row.chunk}})
MERGE (e)-[:{OWN.source}]->(c)
"""
GATHER = f"""
WITH collect(node) AS found
{OWN.around}
RETURN '' AS text, 1.0 AS score,
       {{entities: [e IN found | e {{.name, .type, .text}}], ties: ties,
                                      chunks: {OWN.told("sources")}}} AS metadata
"""
SEARCHED = f"""
WITH collect(node) AS near
{OWN.fused}
RETURN '' AS text, 1.0 AS score, {{chunks: {OWN.told("best")}}} AS metadata
"""


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect."""
        access = {"url": place["uri"], "username": place["username"], "password": place["password"]}
        quiet = {"notifications_min_severity": "OFF"}
        self._graph = Neo4jGraph(**access, driver_config=quiet, refresh_schema=False)  # a refresh needs APOC
        return {name: version(name) for name in ("langchain-neo4j", "langchain-core", "neo4j-graphrag", "neo4j")}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that writes nodes by the vector stores, then the relationships between them."""
        nodes = {kind: _nodes(graph, kind, corpus) for kind in ("entities", "chunks")}
        vectors = graph.vectors["relations"].tolist()
        ties = [_tie(*pair, corpus) for pair in zip(graph.relations, vectors, strict=True)]
        named = [(one["name"], chunk) for one in graph.entities for chunk in one["chunks"]]
        sources = [{"entity": _key(name, corpus), "chunk": _key(chunk, corpus)} for name, chunk in named]
        size = graph.vectors["entities"].shape[1]

        def written() -> None:
            for kind, label in (("entities", OWN.entity), ("chunks", OWN.chunk)):
                self._graph.query(f"CREATE INDEX {label}_corpus IF NOT EXISTS FOR (n:{label}) ON (n.corpus)")
                store = self._store(kind, label, size=size)
                Neo4jVector.from_embeddings(**nodes[kind], **store)
            Neo4jVector(**store, keyword_index_name=OWN.words).create_new_keyword_index(list(INDEXED))
            self._link(CREATE_TIES, ties)
            self._link(CREATE_SOURCES, sources)
            self._graph.query("CALL db.awaitIndexes()")

        return written

    def step(self, step: Step) -> Callable[[], Found]:
        """Return a function that searches entities and chunks for each sub-query."""
        if step.local:
            raise UnsupportedError("a vector store starts from a search of an index, not from given entities")
        size = len(step.queries[0].vector)
        entities = Neo4jVector(**self._store("entities", OWN.entity, size=size), retrieval_query=GATHER)
        chunks = Neo4jVector(**self._store("chunks", OWN.chunk, size=size), retrieval_query=SEARCHED)
        own: dict[str, Any] = {"corpus": {"$eq": step.corpus}}
        known = sorted({name for point in step.memory for name in point})
        around = own | {"name": {"$nin": known}} if known else own
        searches = ((entities, around, MOST), (chunks, own, CANDIDATES))
        asked = [
            {"embedding": query.vector.tolist(), "params": {"lucene": lucene(query, step.corpus)}}
            for query in step.queries
        ]
        return lambda: found(
            store.similarity_search_by_vector(**one, k=most, filter=kept)[0].metadata
            for one in asked
            for store, kept, most in searches
        )

    def close(self) -> None:
        """Close the connections."""
        self._graph.close()

    def _store(self, kind: str, label: str, *, size: int) -> dict[str, Any]:
        nobody = DeterministicFakeEmbedding(size=size)  # required by the constructor; all vectors are precomputed
        named = {"index_name": getattr(OWN, kind), "node_label": label}
        return {"embedding": nobody, "graph": self._graph, "embedding_dimension": size, **named}

    def _link(self, statement: str, rows: Sequence[dict[str, Any]]) -> None:
        for some in batches(rows, BATCH):
            self._graph.query(statement, {"rows": some})


def _key(name: str, corpus: str) -> str:
    return f"{corpus}\n{name}"


def _nodes(graph: Graph, kind: str, corpus: str) -> dict[str, list[Any]]:
    """Return a store's arguments for the nodes of a kind."""
    ids, texts, said = zip(*(_row(one, corpus) for one in getattr(graph, kind)), strict=True)
    pairs = list(zip(texts, graph.vectors[kind].tolist(), strict=True))
    return {"text_embeddings": pairs, "metadatas": list(said), "ids": list(ids)}


def _row(one: Mapping[str, Any], corpus: str) -> tuple[str, str, dict[str, Any]]:
    """Return an entity's or a chunk's id, text and metadata."""
    if "name" in one:
        said = {"corpus": corpus, "name": one["name"], "type": one["type"]}
        return _key(one["name"], corpus), one["description"], said
    said = {"corpus": corpus, "corpus_key": corpus_key(corpus), "chunk": one["id"]}
    return _key(one["id"], corpus), one["text"], said | {"document": one["document"], "position": one["position"]}


def _tie(one: Mapping[str, Any], vector: Sequence[float], corpus: str) -> dict[str, Any]:
    properties = {name: one[name] for name in ("description", "keywords", "weight", "chunks")}
    ends = {"source": _key(one["source"], corpus), "target": _key(one["target"], corpus)}
    return {**ends, "properties": properties, "vector": vector}
