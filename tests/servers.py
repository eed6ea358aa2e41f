"""A server of a test's own, which may be killed and brought back without harm to anybody else."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from hgmem import Settings
from hgmem.local import Server, down, find, up
from hgmem.local.docker import container
from hgmem.local.machine import Sizes
from hgmem.local.process import OPTIONS, configuration
from hgmem.local.state import Home, Record
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder

FOREIGN = ("NEO4J_", "HGMEM_", "OPENAI_", "AZURE_", "ANTHROPIC_")
HEAP, PAGECACHE = "512m", "128m"


@dataclass
class OwnServer:
    """The server, which changes with every restart; clients find it by its data directory, as a user's do."""

    server: Server
    embedder: str = DeterministicEmbedder.name

    @property
    def settings(self) -> Settings:
        """Settings that lead to the server that runs now."""
        return load(
            neo4j_uri=self.server.uri,
            neo4j_username=self.server.username,
            neo4j_password=self.server.password,
            data=self.server.data,
            embedding_model=self.embedder,
        )

    def kill(self) -> None:
        """End the server at once."""
        if self.server.pid is None:
            name = container(Home.at(self.server.data))
            subprocess.run(["docker", "kill", name], check=True, capture_output=True)
        else:
            os.kill(self.server.pid, signal.SIGKILL)
        while find(self.settings):
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server in order: one that was killed can't come back where it may not write."""
        down(self.settings)

    def restart(self, *, more: str = "") -> None:
        """Bring a server back that ended, on its data and with its password; its ports are the same if they are free.

        `more` are lines of its configuration, for a server without Docker.
        """

        def configured(record: Record, sizes: Sizes) -> str:
            return configuration(record, sizes) + more

        with patch("hgmem.local.process.configuration", configured):
            self.server = up(load(data=self.server.data), heap=HEAP, pagecache=PAGECACHE)


# What keeps plans. Corpora come and go by the hundred here, and lists are of one row, then of three: each time the
# server would plan the large statements anew, for a second.
PLANNED_ONCE = """dbms.cypher.min_replan_interval=1d
internal.cypher.use_parameter_size=false
"""
# A server that lives for minutes spends more on its second compiler than it gets back.
BRIEFLY = (*OPTIONS, "-XX:TieredStopAtLevel=1")


@contextmanager
def any_ports(*, more: str = PLANNED_ONCE) -> Iterator[None]:
    """Let a server that starts for the first time take any ports: several runs at once would all want Neo4j's own.

    `more` are lines of its configuration, for a server without Docker.
    """

    def configured(record: Record, sizes: Sizes) -> str:
        return configuration(record, sizes) + more

    with (
        patch.multiple("hgmem.local.starting", BOLT=0, HTTP=0),
        patch.multiple("hgmem.local.process", configuration=configured, OPTIONS=BRIEFLY),
    ):
        yield


@contextmanager
def own_server(directory: Path, *, embedder: str = DeterministicEmbedder.name) -> Iterator[OwnServer]:
    """A server on a data directory in this one; it ends with the block."""
    settings = load(data=directory / "home")
    try:
        with any_ports():
            server = up(settings, heap=HEAP, pagecache=PAGECACHE)
        yield OwnServer(server, embedder)
    finally:
        down(settings)


@contextmanager
def alone(*, embedder: str = DeterministicEmbedder.name) -> Iterator[OwnServer]:
    """A server for a script; nothing of the caller's environment and files is used, and nothing of it stays behind."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or the server would stay behind
    with (
        tempfile.TemporaryDirectory(prefix="hgmem-long.") as directory,
        chdir(directory),
        own_server(Path(directory), embedder=embedder) as own,
    ):
        yield own
