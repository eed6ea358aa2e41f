"""LightRAG with its graph in Neo4j; vectors, chunks and the rest stay in files, so the process holds them too.

See `systems.lightrag` for what it does otherwise. Neo4j gets a label for each corpus.
"""

import logging
import os

from systems.lightrag import System as Files


class System(Files):
    """See `serve.Benched`."""

    storages = {"graph_storage": "Neo4JStorage"}  # noqa: RUF012
    packages = (*Files.packages, "neo4j")

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Say where Neo4j is by what the package reads, and where the files go."""
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        for name in ("uri", "username", "password"):
            os.environ[f"NEO4J_{name.upper()}"] = place[name]
        os.environ["NEO4J_DATABASE"] = "neo4j"
        return super().open(place)
