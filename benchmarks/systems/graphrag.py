"""Neo4j's GraphRAG package: `Neo4jWriter` and `VectorCypherRetriever`, its filter within the vector index.

What it does otherwise: one call of the retriever, so one statement, for each sub-query. Its hybrid retrievers take no
filters and so can't be kept to a corpus; words are looked up in the query that it appends to the search. It keeps no
memory: which entities to leave out, the caller says.
"""

import asyncio
import re
from collections.abc import Callable
from importlib.metadata import version

import neo4j
from graphs import Found, Graph, Query, Step, UnsupportedError
from neo4j_graphrag.components import kg_writer
from neo4j_graphrag.components.types import LexicalGraphConfig, Neo4jGraph, Neo4jNode, Neo4jRelationship
from neo4j_graphrag.indexes import create_fulltext_index, create_vector_index
from neo4j_graphrag.retrievers import VectorCypherRetriever
from neo4j_graphrag.types import RetrieverResultItem

ENTITY, CHUNK, TIE, SOURCE = "GraphRAGEntity", "GraphRAGChunk", "GRAPHRAG_RELATED", "GRAPHRAG_FROM"
ENTITIES, CHUNKS, WORDS = "graphrag_entities", "graphrag_chunks", "graphrag_words"
MOST, PROPOSED = 5, 200
APOC = "CALL apoc.merge.relationship(start, row.type, {}, row.properties, end, row.properties) YIELD rel"
MERGE = "MERGE (start)-[rel:$(row.type)]->(end) ON CREATE SET rel += row.properties ON MATCH SET rel += row.properties"
GATHER = f"""
WITH node AS e, score WHERE NOT e.name IN $known
WITH e, score ORDER BY score DESC LIMIT {MOST}
WITH collect(e) AS found
CALL (found) {{
  UNWIND found AS e MATCH (e)-[r:{TIE}]-() WITH DISTINCT r
  WITH r, vector.similarity.cosine(r.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(r {{.description, .keywords, .weight, source: startNode(r).name, target: endNode(r).name}}) AS ties
}}
CALL (found) {{
  UNWIND found AS e MATCH (e)-[:{SOURCE}]->(c:{CHUNK}) WITH DISTINCT c
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score ORDER BY score DESC LIMIT {MOST}
  RETURN collect(c {{.id, .text, score}}) AS sources
}}
CALL () {{
  MATCH (c:{CHUNK}) SEARCH c IN (VECTOR INDEX {CHUNKS} FOR $query_vector WHERE c.corpus = $corpus LIMIT {MOST})
  SCORE AS score
  RETURN collect(c {{.id, .text, score}}) AS near
}}
CALL () {{
  CALL db.index.fulltext.queryNodes('{WORDS}', $words, {{limit: {PROPOSED}}}) YIELD node AS c, score AS weight
  WHERE c.corpus = $corpus
  WITH c, vector.similarity.cosine(c.embedding, $query_vector) AS score, weight ORDER BY weight DESC LIMIT {MOST}
  RETURN collect(c {{.id, .text, score}}) AS matching
}}
RETURN [e IN found | e {{.name, .type, .description}}] AS entities, ties, sources + near + matching AS chunks
"""


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect, and let the writer do without APOC where the server lacks it."""
        self._driver = neo4j.GraphDatabase.driver(place["uri"], auth=(place["username"], place["password"]))
        asked = "SHOW PROCEDURES YIELD name WHERE name = 'apoc.merge.relationship' RETURN name"
        if not self._driver.execute_query(asked).records:
            _without_apoc()
        self._retriever: VectorCypherRetriever | None = None
        return {name: version(name) for name in ("neo4j-graphrag", "neo4j")}

    def write(self, graph: Graph, corpus: str) -> None:
        """Write nodes, relationships and vectors by the package's writer, into its indexes."""
        size = graph.vectors["entities"].shape[1]
        for name, label in ((ENTITIES, ENTITY), (CHUNKS, CHUNK)):
            create_vector_index(
                self._driver, name, label, "embedding", size, "cosine", filterable_properties=["corpus"]
            )
        create_fulltext_index(self._driver, WORDS, CHUNK, ["text"])
        writer = kg_writer.Neo4jWriter(self._driver)
        done = asyncio.run(writer.run(_graph(graph, corpus), LexicalGraphConfig(chunk_node_label=CHUNK)))
        if done.status != "SUCCESS":
            raise RuntimeError(str(done.metadata))
        self._driver.execute_query("CALL db.awaitIndexes()")

    def step(self, step: Step) -> Callable[[], Found]:
        """Return what calls the retriever once for each sub-query."""
        if step.local:
            raise UnsupportedError("a retriever starts from a search of an index, not from given entities")
        retriever = self._retriever = self._retriever or _retriever(self._driver)
        known = sorted({name for point in step.memory for name in point})
        asked = [self._arguments(query, step.corpus, known) for query in step.queries]

        def retrieve() -> Found:
            found = [retriever.search(**arguments).items[0].metadata for arguments in asked]
            chunks = {chunk["id"]: chunk["score"] for one in found for chunk in one["chunks"]}
            return Found(
                entities=len({entity["name"] for one in found for entity in one["entities"]}),
                relations=len({(tie["source"], tie["target"]) for one in found for tie in one["ties"]}),
                chunks=tuple(sorted(chunks, key=lambda chunk: -chunks[chunk])),
            )

        return retrieve

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def _arguments(self, query: Query, corpus: str, known: list[str]) -> dict[str, object]:
        words = " ".join(re.findall(r"\w+", query.text.lower()))
        return {
            "query_vector": query.vector.tolist(),
            "top_k": MOST + len(known),
            "filters": {"corpus": corpus},
            "query_params": {"corpus": corpus, "known": known, "words": words},
        }


def _graph(graph: Graph, corpus: str) -> Neo4jGraph:
    def node(label: str, key: str, said: dict[str, object], vector: object) -> Neo4jNode:
        properties = {"corpus": corpus} | {name: said[name] for name in said if name != "chunks"}
        return Neo4jNode(id=key, label=label, properties=properties, embedding_properties={"embedding": vector})

    vectors = {kind: graph.vectors[kind].tolist() for kind in graph.vectors}
    nodes = [
        node(CHUNK, f"c {one['id']}", one, vector) for one, vector in zip(graph.chunks, vectors["chunks"], strict=True)
    ] + [
        node(ENTITY, f"e {one['name']}", one, vector)
        for one, vector in zip(graph.entities, vectors["entities"], strict=True)
    ]
    ties = [
        Neo4jRelationship(
            start_node_id=f"e {one['source']}",
            end_node_id=f"e {one['target']}",
            type=TIE,
            properties={name: one[name] for name in ("description", "keywords", "weight", "chunks")},
            embedding_properties={"embedding": vector},
        )
        for one, vector in zip(graph.relations, vectors["relations"], strict=True)
    ]
    sources = [
        Neo4jRelationship(start_node_id=f"e {one['name']}", end_node_id=f"c {chunk}", type=SOURCE)
        for one in graph.entities
        for chunk in one["chunks"]
    ]
    return Neo4jGraph(nodes=nodes, relationships=ties + sources)


def _retriever(driver: neo4j.Driver) -> VectorCypherRetriever:
    """Return the retriever, told what its index filters by.

    It looks for that in the index's options, where this server does not list it, and then fails: what it falls back on
    reads an attribute that this retriever never sets.
    """
    found = VectorCypherRetriever(driver, ENTITIES, retrieval_query=GATHER, result_formatter=_item)
    found._filterable_properties = found._filterable_properties or ["corpus"]
    return found


def _item(record: neo4j.Record) -> RetrieverResultItem:
    return RetrieverResultItem(content="", metadata=record.data())


def _without_apoc() -> None:
    """Let the writer merge relationships by the statement that the procedure stands for."""
    original = kg_writer.upsert_relationship_query

    def replaced(**support: bool) -> str:
        query = original(**support)
        if APOC not in query:
            raise UnsupportedError("its writer needs APOC, in a statement that is not known here")
        return query.replace(APOC, MERGE)

    kg_writer.upsert_relationship_query = replaced
