"""Writes a graph with Neo4j's GraphRAG package; runs in a Python with that package and reads JSON from stdin.

The package's requirements conflict with hgmem's (it needs an older pypdf), so it has its own environment. Its pipeline
is unmodified, with a language model and an embedder that need no network. If the server lacks APOC, an equivalent
MERGE replaces the one procedure that the writer calls; entities are then not resolved.
"""

import asyncio
import hashlib
import json
import sys
from itertools import pairwise
from typing import Any

import neo4j
from neo4j_graphrag.components import kg_writer
from neo4j_graphrag.components.lexical_graph import LexicalGraphBuilder
from neo4j_graphrag.components.text_splitters.fixed_size_splitter import FixedSizeSplitter
from neo4j_graphrag.components.types import LexicalGraphConfig
from neo4j_graphrag.embeddings.base import Embedder
from neo4j_graphrag.experimental.pipeline.kg_builder import SimpleKGPipeline
from neo4j_graphrag.llm.base import LLMInterface
from neo4j_graphrag.llm.types import LLMResponse

APOC = "CALL apoc.merge.relationship(start, row.type, {}, row.properties, end, row.properties) YIELD rel"
MERGE = "MERGE (start)-[rel:$(row.type)]->(end) ON CREATE SET rel += row.properties ON MATCH SET rel += row.properties"
DIMENSIONS = 8


class Hashes(Embedder):
    """An embedder with the same vectors on every run."""

    def embed_query(self, text: str) -> list[float]:
        digest = hashlib.blake2b(text.encode(), digest_size=DIMENSIONS).digest()
        return [byte / 255 for byte in digest]


class Lexicon(LLMInterface):
    """A model with a fixed list of names: it finds these in the text and relates each to the next one."""

    def __init__(self, known: dict[str, dict[str, Any]]) -> None:
        super().__init__(model_name="lexicon")
        self.known = known

    def invoke(self, input: Any, *_: Any, **__: Any) -> LLMResponse:  # noqa: A002
        text = str(input).rpartition("Input text:")[2]
        names = sorted((name for name in self.known if name in text), key=text.index)
        nodes = [
            {"id": str(at), "label": self.known[name]["label"], "properties": {"name": name} | self.known[name]["says"]}
            for at, name in enumerate(names)
        ]
        relationships = [
            {
                "type": self.known[names[here]]["leads"],
                "start_node_id": str(here),
                "end_node_id": str(after),
                "properties": {"order": here},
            }
            for here, after in pairwise(range(len(names)))
        ]
        return LLMResponse(content=json.dumps({"nodes": nodes, "relationships": relationships}))

    async def ainvoke(self, input: Any, *_: Any, **__: Any) -> LLMResponse:  # noqa: A002
        return self.invoke(input)


def without_apoc(driver: neo4j.Driver) -> None:
    """Replace the writer's APOC procedure if the server lacks it."""
    listed, _, _ = driver.execute_query("SHOW PROCEDURES YIELD name WHERE name = 'apoc.merge.relationship' RETURN name")
    if listed:
        return
    original = kg_writer.upsert_relationship_query

    def replaced(**support: bool) -> str:
        query = original(**support)
        assert APOC in query, "the package writes relationships otherwise now"
        return query.replace(APOC, MERGE)

    kg_writer.upsert_relationship_query = replaced


async def write(driver: neo4j.Driver, told: dict[str, Any]) -> None:
    """Run the pipeline over each text."""
    config = LexicalGraphConfig(**told.get("config", {}))
    pipeline = SimpleKGPipeline(
        llm=Lexicon(told["known"]),
        driver=driver,
        embedder=Hashes(),
        schema="FREE",
        from_file=False,
        text_splitter=FixedSizeSplitter(chunk_size=600, chunk_overlap=60),
        on_error="RAISE",
        perform_entity_resolution=False,
        lexical_graph_config=config,
    )
    for path, text in told["texts"].items():
        done = await pipeline.run_async(
            text=text, file_path=path, document_metadata={"year": "1922", "shelf": path[:1]}
        )
        assert done.result["writer"]["status"] == "SUCCESS", done


async def write_bare(driver: neo4j.Driver, told: dict[str, Any]) -> None:
    """Write a text's lexical graph without a document, as the builder does without a `DocumentInfo`."""
    for text in told.get("bare", []):
        chunks = await FixedSizeSplitter(chunk_size=60, chunk_overlap=0).run(text=text)
        built = await LexicalGraphBuilder().run(text_chunks=chunks)
        done = await kg_writer.Neo4jWriter(driver).run(graph=built.graph)
        assert done.status == "SUCCESS", done


def main() -> None:
    """Write the graph that stdin describes, and print the package's version."""
    from importlib.metadata import version

    told = json.load(sys.stdin)
    with neo4j.GraphDatabase.driver(told["uri"], auth=(told["username"], told["password"])) as driver:
        without_apoc(driver)
        asyncio.run(write(driver, told))
        asyncio.run(write_bare(driver, told))
    print(version("neo4j-graphrag"))  # noqa: T201


if __name__ == "__main__":
    main()
