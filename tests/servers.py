"""The servers of the tests: which files need one for themselves, and one that may be killed and restarted."""

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
    """The server, which changes with every restart; clients find it by its data directory, like a user's clients."""

    server: Server
    embedder: str = DeterministicEmbedder.name

    @property
    def settings(self) -> Settings:
        """Settings for the server that currently runs."""
        return load(
            neo4j_uri=self.server.uri,
            neo4j_username=self.server.username,
            neo4j_password=self.server.password,
            data=self.server.data,
            embedding_model=self.embedder,
        )

    def kill(self) -> None:
        """Kill the server."""
        if self.server.pid is None:
            name = container(Home.at(self.server.data))
            subprocess.run(["docker", "kill", name], check=True, capture_output=True)
        else:
            os.kill(self.server.pid, signal.SIGKILL)
        while find(self.settings):
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server cleanly: a killed server can't restart on a read-only disk."""
        down(self.settings)

    def restart(self, *, more: str = "") -> None:
        """Restart a server on its data and with its password, on the same ports if they are free.

        `more` are lines of its configuration, for a server without Docker.
        """

        def configured(record: Record, sizes: Sizes) -> str:
            return configuration(record, sizes) + KEPT_PLANS + more

        with patch("hgmem.local.process.configuration", configured):
            self.server = up(load(data=self.server.data), heap=HEAP, pagecache=PAGECACHE)


# Files whose tests look at all that a server holds, or change what all its corpora share, each with its reason. They
# use a server that the other test processes don't use.
WHOLE_SERVER = {
    "test_adopting.py": "adopts what another program wrote, and clears it away",
    "test_docs.py": "runs the documents' examples, whose corpora have the names that the documents say",
    "test_notebooks.py": "runs the notebooks, likewise",
    "test_page.py": "has pages of a service that asks for no key, as there is none",
    "test_page_addresses.py": "likewise",
    "test_plans.py": "deletes all data, because plans depend on how much there is",
    "test_schema.py": "drops indexes and constraints",
    "test_service_ends.py": "counts the calls of jobs, which another process of the service could take",
    "test_statements.py": "looks at plans, likewise",
}
# Of these, one process runs all but the notebooks, which take minutes: one server for them is enough.
IN_ONE_PROCESS = WHOLE_SERVER.keys() - {"test_notebooks.py"}

# What every server of the tests is told. Corpora come and go by the hundred here: after each change of their number the
# server would plan the large statements anew, for a second. Tests of wrong passwords would lock out the others.
KEPT_PLANS = """dbms.cypher.min_replan_interval=1d
dbms.security.auth_max_failed_attempts=0
"""
# Two servers share two cores: a collector without threads of its own leaves them to the tests. And a server of a few
# tests spends more on Java's second compiler than it gets back; that of all tests does not.
LONGER = (*(option for option in OPTIONS if option != "-XX:+UseG1GC"), "-XX:+UseSerialGC")
BRIEFLY = (*LONGER, "-XX:TieredStopAtLevel=1")


@contextmanager
def any_ports(java: tuple[str, ...] = BRIEFLY) -> Iterator[None]:
    """Let a new server use any free ports, because concurrent runs would all use Neo4j's default ports.

    Without Docker, it also has what every server of the tests is told.
    """

    def configured(record: Record, sizes: Sizes) -> str:
        return configuration(record, sizes) + KEPT_PLANS

    with (
        patch.multiple("hgmem.local", BOLT=0, HTTP=0),
        patch.multiple("hgmem.local.process", configuration=configured, OPTIONS=java),
    ):
        yield


@contextmanager
def own_server(directory: Path, *, embedder: str = DeterministicEmbedder.name) -> Iterator[OwnServer]:
    """Yield a server with a data directory in this folder; stop it at the end of the block."""
    settings = load(data=directory / "home")
    try:
        with any_ports():
            server = up(settings, heap=HEAP, pagecache=PAGECACHE)
        yield OwnServer(server, embedder)
    finally:
        down(settings)


@contextmanager
def alone(*, embedder: str = DeterministicEmbedder.name) -> Iterator[OwnServer]:
    """Yield a server for a script, without the caller's environment and files; delete all its data at the end."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise the server keeps running
    with (
        tempfile.TemporaryDirectory(prefix="hgmem-long.") as directory,
        chdir(directory),
        own_server(Path(directory), embedder=embedder) as own,
    ):
        yield own
