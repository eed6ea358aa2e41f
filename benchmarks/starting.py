"""Seconds from the start of `hgmem serve` and `hgmem mcp` to their first answer, on the demo's corpus.

    python benchmarks/starting.py [--times 3]

Each is started anew as a process: with a warm disk, the configured embedder and no language model. `ready` is when the
service listens, or when the assistant's session is open; `first` and `second` are when these questions are answered.
`cpu` are the CPU seconds of the process until the first answer, which a busy machine changes little.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import httpx
import psutil
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from measures import machine
from running import access, running

from hgmem import HGMem
from hgmem.local import Server
from hgmem.text.resources import resource

CORPUS = "affair"
QUESTION = "Who owned the warehouse?"


def cpu() -> float:
    """Return the CPU seconds of the process that is measured."""
    mine = [one for one in psutil.Process().children(recursive=True) if {"serve", "mcp"} & set(one.cmdline())]
    return sum(sum(one.cpu_times()[:2]) for one in mine)


def served(environment: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of the service."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "hgmem", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = (json.loads(line) for line in process.stderr)
        address = next(line["address"] for line in lines if line["event"] == "serving")
        took = {"ready": time.perf_counter() - began}
        with httpx.Client(base_url=address, timeout=300, trust_env=False) as http:
            for name in ("first", "second"):
                http.post(f"/corpora/{CORPUS}/questions", json={"question": QUESTION}).raise_for_status()
                took[name] = time.perf_counter() - began
                took.setdefault("cpu", cpu())
        process.terminate()
    return took


async def assisted(environment: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of the server of tools."""
    began = time.perf_counter()
    command = ["-m", "hgmem", "mcp", "--corpus", CORPUS, "--seconds", "300"]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(environment))
    async with Client(server, read_timeout_seconds=300) as session:
        took = {"ready": time.perf_counter() - began}
        for name in ("first", "second"):
            result = await session.call_tool("ask", {"question": QUESTION})
            assert not result.is_error, result
            took[name] = time.perf_counter() - began
            took.setdefault("cpu", cpu())
    return took


def measured(server: Server, times: int) -> dict[str, Any]:
    """Return the median seconds of each, and of a bare start of Python with the client's imports."""
    with HGMem.open(CORPUS, **access(server)) as client:
        client.add(resource("examples", "affair"))
    password = server.password.get_secret_value()
    place = {"NEO4J_URI": server.uri, "NEO4J_USERNAME": server.username, "NEO4J_PASSWORD": password}
    environment = {**os.environ, **place}
    found: dict[str, list[dict[str, float]]] = {"serve": [], "mcp": []}
    for _ in range(times):
        found["serve"].append(served(environment))
        found["mcp"].append(asyncio.run(assisted(environment)))
    return {
        name: {part: round(statistics.median(run[part] for run in runs), 2) for part in runs[0]}
        for name, runs in found.items()
    }


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    with running() as (server, _):
        print(json.dumps({**measured(server, given.times), "machine": machine()}, indent=1))


if __name__ == "__main__":
    main()
