"""Graphiti on Neo4j: its bulk write and its combined hybrid search, one group per corpus, without a model.

Differences: chunks are episodes, which it finds by full-text search alone. It has no vector index in Neo4j, so it
compares every vector of the group. Each of its searches is a statement; they run concurrently. Its labels are :Entity
and :Episodic, so it needs a server without hgmem. Communities are neither created nor searched.
"""

import asyncio
import logging
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"

from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.graphiti_types import GraphitiClients
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search import search
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.search.search_utils import get_episodes_by_mentions
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk
from graphs import Found, Graph, Step, UnsupportedError

from systems._keywords import joined
from systems._loop import Loop

MOST = 5
THEN = datetime(2000, 1, 1, tzinfo=UTC)  # Graphiti requires dates; these texts have none


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect and create its indexes."""
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        self._loop = Loop()
        self._driver = Neo4jDriver(place["uri"], place["username"], place["password"])
        # The search gets vectors and fuses ranks, so it needs no embedder, language model or reranker.
        self._clients = GraphitiClients.model_construct(driver=self._driver, embedder=None, cross_encoder=None)
        self._loop.run(self._driver.build_indices_and_constraints())
        return {name: version(name) for name in ("graphiti-core", "neo4j")}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that writes episodes, entities and edges by its bulk write, in one transaction."""
        episodes = [
            EpisodicNode(
                uuid=_uuid(corpus, one["id"]), name=one["id"], group_id=corpus, source=EpisodeType.text, valid_at=THEN,
                source_description=one["document"], content=one["text"], created_at=THEN,
            )
            for one in graph.chunks
        ]  # fmt: skip
        entities = [
            EntityNode(
                uuid=_uuid(corpus, one["name"]), name=one["name"], group_id=corpus, summary=one["description"],
                attributes={"type": one["type"]}, name_embedding=vector, created_at=THEN,
            )
            for one, vector in zip(graph.entities, graph.vectors["entities"].tolist(), strict=True)
        ]  # fmt: skip
        mentions = [
            EpisodicEdge(
                uuid=_uuid(corpus, chunk, one["name"]), group_id=corpus, created_at=THEN,
                source_node_uuid=_uuid(corpus, chunk), target_node_uuid=_uuid(corpus, one["name"]),
            )
            for one in graph.entities
            for chunk in one["chunks"]
        ]  # fmt: skip
        edges = [
            EntityEdge(
                uuid=_uuid(corpus, one["source"], one["target"], one["description"]), group_id=corpus, created_at=THEN,
                source_node_uuid=_uuid(corpus, one["source"]), target_node_uuid=_uuid(corpus, one["target"]),
                name=joined(one["keywords"]), fact=one["description"], fact_embedding=vector,
                episodes=[_uuid(corpus, chunk) for chunk in one["chunks"]], valid_at=THEN, reference_time=THEN,
            )
            for one, vector in zip(graph.relations, graph.vectors["relations"].tolist(), strict=True)
        ]  # fmt: skip

        def written() -> None:
            self._loop.run(add_nodes_and_edges_bulk(self._driver, episodes, mentions, entities, edges, None))
            self._loop.run(self._driver.execute_query("CALL db.awaitIndexes()"))

        return written

    def step(self, step: Step) -> Callable[[], Found]:
        """Return a function that searches for all sub-queries concurrently."""
        if step.local:
            raise UnsupportedError(
                "its search from given nodes follows outgoing edges alone and takes any ten of what it meets"
            )
        if step.memory:
            raise UnsupportedError("its filters can't leave entities out")

        config = _config()
        asked = [(query.text, query.vector.tolist()) for query in step.queries]

        async def gather() -> list[tuple[Any, Any]]:
            return await asyncio.gather(*(self._search(text, vector, config, step.corpus) for text, vector in asked))

        def retrieve() -> Found:
            found = self._loop.run(gather())
            episodes = [episode.name for one, sources in found for episode in (*one.episodes, *sources)]
            return Found(
                entities=tuple(sorted({node.name for one, _ in found for node in one.nodes})),
                relations=len({edge.uuid for one, _ in found for edge in one.edges}),
                chunks=tuple(dict.fromkeys(episodes)),
            )

        return retrieve

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._driver.close())
        self._loop.close()

    async def _search(self, text: str, vector: list[float], config: Any, corpus: str) -> tuple[Any, Any]:
        found = await search(self._clients, text, [corpus], config, SearchFilters(), query_vector=vector)
        sources = await get_episodes_by_mentions(self._driver, found.nodes, found.edges, limit=MOST)
        return found, sources


def _config() -> Any:
    """Return its recipe, limited to five of each kind, without a similarity threshold, as for the other systems."""
    kept = COMBINED_HYBRID_SEARCH_RRF.model_copy(update={"community_config": None, "limit": MOST}, deep=True)
    kept.node_config.sim_min_score = kept.edge_config.sim_min_score = 0.0
    return kept


def _uuid(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "\n".join(parts)))
