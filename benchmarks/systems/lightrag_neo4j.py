"""LightRAG with its graph in Neo4j. Vectors, chunks and the rest stay in files, and so in the process's RAM.

See `systems.lightrag` for the differences. Neo4j gets a label for each corpus.
"""

import logging
import os

from systems.lightrag import System as Files


class System(Files):
    """See `serve.Benched`."""

    storages = {"graph_storage": "Neo4JStorage"}  # noqa: RUF012
    packages = (*Files.packages, "neo4j")

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Set the environment variables of Neo4j that the package reads, and the folder for files."""
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        for name in ("uri", "username", "password"):
            os.environ[f"NEO4J_{name.upper()}"] = place[name]
        os.environ["NEO4J_DATABASE"] = "neo4j"
        return super().open(place)
