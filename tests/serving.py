"""Real processes of the service."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from hgmem import HGMem


class Service:
    """A process of the service, and a client of HTTP for it."""

    def __init__(self, environment: Mapping[str, str], *options: str) -> None:
        command = [sys.executable, "-m", "hgmem", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, env=dict(environment), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        self.lines: list[dict[str, Any]] = []
        for line in self.process.stderr:
            assert line.startswith("{"), line
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == "serving":
                break
        self.address = self.lines[-1]["address"] if self.lines else ""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        """Read what the process says, which would wait for it otherwise."""
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def http(self, token: str = "") -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.address, headers=headers, timeout=120, trust_env=False)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End it as a supervisor does, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reading.join(10)
        return code


@contextmanager
def serving(client: HGMem, *options: str, **more: str) -> Iterator[Service]:
    """Yield a process of the service on the database of a client."""
    settings = client.settings
    password = settings.neo4j_password
    named = {"NEO4J_URI": settings.neo4j_uri or "", "NEO4J_USERNAME": settings.neo4j_username}
    environment = {
        **os.environ,
        **({**named, "NEO4J_PASSWORD": password.get_secret_value()} if password else {}),
        "HGMEM_EMBEDDING_MODEL": settings.embedding_model,
        "HGMEM_DATA": str(settings.data),
        "XDG_STATE_HOME": str(settings.data / "state"),
        **more,
    }
    service = Service(environment, *options)
    try:
        yield service
    finally:
        service.stop()


def events_of(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the server-sent events of a response."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: {"):
            yield name, json.loads(line.removeprefix("data: "))
