"""Neo4j's GraphRAG package: `Neo4jWriter` and `VectorCypherRetriever`, with its filter within the vector index.

Differences: one call of the retriever, and thus one statement, for each sub-query. Its hybrid retrievers take no
filters and so can't be limited to a corpus; the query appended to the search does the full-text search. It stores no
memory: the caller names the entities to exclude.
"""

import asyncio
import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import neo4j
from graphs import Found, Graph, Query, Step, UnsupportedError, corpus_key, lucene
from neo4j_graphrag.components import kg_writer
from neo4j_graphrag.components.types import LexicalGraphConfig, Neo4jGraph, Neo4jNode, Neo4jRelationship
from neo4j_graphrag.indexes import create_fulltext_index, create_vector_index
from neo4j_graphrag.retrievers import VectorCypherRetriever
from neo4j_graphrag.types import RetrieverResultItem

from systems._neo4j import CANDIDATES, INDEXED, MOST, Names, found

OWN = Names("graphrag", id="id")
APOC = "CALL apoc.merge.relationship(start, row.type, {}, row.properties, end, row.properties) YIELD rel"
MERGE = "MERGE (start)-[rel:$(row.type)]->(end) ON CREATE SET rel += row.properties ON MATCH SET rel += row.properties"
GATHER = """
WITH node AS e, score WHERE NOT e.name IN $known
WITH e ORDER BY score DESC LIMIT %(most)s
WITH collect(e) AS found
%(around)s
CALL () {
  MATCH (c:%(chunk)s) SEARCH c IN (VECTOR INDEX %(chunks)s FOR $query_vector WHERE c.corpus = $corpus LIMIT %(pool)s)
  SCORE AS score
  WITH c, score ORDER BY score DESC LIMIT %(candidates)s
  RETURN collect(c) AS near
}
%(fused)s
RETURN [e IN found | e {.name, .type, .description}] AS entities, ties, %(told)s AS chunks
"""


class System:
    """See `serve.Benched`. `pool` is the number of entities requested from the index; five of them are kept."""

    pool = MOST

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect; replace APOC in the writer if the server lacks it."""
        self._driver = neo4j.GraphDatabase.driver(
            place["uri"], auth=(place["username"], place["password"]), notifications_min_severity="OFF"
        )
        self._retriever: VectorCypherRetriever | None = None
        self._indexed = False
        asked = "SHOW PROCEDURES YIELD name WHERE name = 'apoc.merge.relationship' RETURN name"
        written = kg_writer.upsert_relationship_query(True)
        if not self._driver.execute_query(asked).records:
            if APOC not in written:
                raise UnsupportedError("its writer needs APOC, in a statement that is not known here")
            kg_writer.upsert_relationship_query = lambda **_: written.replace(APOC, MERGE)
        return {name: version(name) for name in ("neo4j-graphrag", "neo4j")}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that writes nodes, relationships and vectors by the package's writer, into its indexes."""
        brought = _graph(graph, corpus)

        def written() -> None:
            if not self._indexed:
                self._index(graph.vectors["entities"].shape[1])
            writer = kg_writer.Neo4jWriter(self._driver)
            done = asyncio.run(writer.run(brought, LexicalGraphConfig(chunk_node_label=OWN.chunk)))
            if done.status != "SUCCESS":
                raise RuntimeError(str(done.metadata))
            self._driver.execute_query("CALL db.awaitIndexes()")

        return written

    def step(self, step: Step) -> Callable[[], Found]:
        """Return a function that calls the retriever once for each sub-query."""
        if step.local:
            raise UnsupportedError("a retriever starts from a search of an index, not from given entities")
        retriever = self._retriever = self._retriever or _retriever(self._driver, self.pool)
        known = sorted({name for point in step.memory for name in point})
        asked = [_arguments(query, step.corpus, known) | self._ratio(len(known)) for query in step.queries]
        return lambda: found(retriever.search(**arguments).items[0].metadata for arguments in asked)

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def _index(self, dimensions: int) -> None:
        for name, label in ((OWN.entities, OWN.entity), (OWN.chunks, OWN.chunk)):
            own = {"filterable_properties": ["corpus"]}
            create_vector_index(self._driver, name, label, "embedding", dimensions, "cosine", **own)
        create_fulltext_index(self._driver, OWN.words, OWN.chunk, list(INDEXED))
        self._indexed = True

    def _ratio(self, known: int) -> dict[str, int]:
        """Return the ratio by which the package requests `pool` items plus the excluded ones from its index."""
        return {"effective_search_ratio": math.ceil((self.pool + known) / (MOST + known))}


def _retriever(driver: neo4j.Driver, pool: int) -> VectorCypherRetriever:
    """Return the retriever with its index's filterable properties set.

    It looks for these in the index's options, where this server does not list them. Its fallback then fails, because it
    reads an attribute that this retriever never sets.
    """
    parts = {"around": OWN.around, "fused": OWN.fused, "told": OWN.told("sources + best")}
    indexes = {"chunk": OWN.chunk, "chunks": OWN.chunks}
    limits = {"most": MOST, "candidates": CANDIDATES, "pool": max(pool, CANDIDATES)}
    gather = GATHER % (parts | indexes | limits)
    made = VectorCypherRetriever(
        driver, OWN.entities, gather, None, lambda record: RetrieverResultItem(content="", metadata=record.data())
    )
    made._filterable_properties = made._filterable_properties or ["corpus"]
    return made


def _arguments(query: Query, corpus: str, known: list[str]) -> dict[str, Any]:
    return {
        "query_vector": query.vector.tolist(),
        "top_k": MOST + len(known),
        "filters": {"corpus": corpus},
        "query_params": {"corpus": corpus, "known": known, "lucene": lucene(query, corpus)},
    }


def _graph(graph: Graph, corpus: str) -> Neo4jGraph:
    nodes, between = [], []
    for kind, label, key in (("chunks", OWN.chunk, "id"), ("entities", OWN.entity, "name")):
        for one, vector in zip(getattr(graph, kind), graph.vectors[kind].tolist(), strict=True):
            said = {name: one[name] for name in one if name != "chunks"}
            said |= {"corpus": corpus, "corpus_key": corpus_key(corpus)}
            vectors = {"embedding": vector}
            nodes.append(Neo4jNode(id=f"{key} {one[key]}", label=label, properties=said, embedding_properties=vectors))
    for one, vector in zip(graph.relations, graph.vectors["relations"].tolist(), strict=True):
        said = {name: one[name] for name in ("description", "keywords", "weight", "chunks")}
        ends = {"start_node_id": f"name {one['source']}", "end_node_id": f"name {one['target']}"}
        vectors = {"embedding": vector}
        between.append(Neo4jRelationship(**ends, type=OWN.tie, properties=said, embedding_properties=vectors))
    for one in graph.entities:
        ends = ({"start_node_id": f"name {one['name']}", "end_node_id": f"id {chunk}"} for chunk in one["chunks"])
        between += [Neo4jRelationship(**pair, type=OWN.source) for pair in ends]
    return Neo4jGraph(nodes=nodes, relationships=between)
