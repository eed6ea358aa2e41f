"""Assistants: the SDK's own client of a real process of `hgmem mcp`, over both transports."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp import Client
from mcp.client.stdio import StdioServerParameters

Environment: TypeAlias = dict[str, str]
Connecting: TypeAlias = Callable[..., AbstractAsyncContextManager["Caller"]]

PATIENCE = 60.0  # seconds


@dataclass
class Caller:
    """A client whose calls return plain values."""

    client: Client
    heard: list[tuple[float, str | None]] = field(default_factory=list)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a call, which its text says too."""
        done = await self.client.call_tool(tool, arguments, progress_callback=self._hear)
        assert not done.is_error, done.content
        assert json.loads(done.content[0].text) == done.structured_content
        return done.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Return the line of a call that fails."""
        done = await self.client.call_tool(tool, arguments)
        assert done.is_error, done.content
        assert done.structured_content is None
        (said,) = done.content
        assert "\n" not in said.text
        assert "Traceback" not in said.text
        return said.text

    async def read(self, uri: str) -> str:
        """Return the text of a resource."""
        (found,) = (await self.client.read_resource(uri)).contents
        return found.text

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, message))


@asynccontextmanager
async def over_stdio(environment: Environment, *arguments: str, mode: str = "auto") -> AsyncIterator[Caller]:
    """Yield a client of a server that it starts itself."""
    command = ["-m", "hgmem", "mcp", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with Client(server, mode=mode) as client:
        yield Caller(client)


@asynccontextmanager
async def over_http(environment: Environment, *arguments: str, mode: str = "auto") -> AsyncIterator[Caller]:
    """Yield a client of a server that listens on a free port."""
    with serving(environment, *arguments) as address:
        async with Client(address, mode=mode) as client:
            yield Caller(client)


class serving:  # noqa: N801
    """A server that listens on a free port, as a context whose value is its address."""

    def __init__(self, environment: Environment, *arguments: str) -> None:
        command = [sys.executable, "-m", "hgmem", "mcp", "--http", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> str:
        assert self.process.stderr
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", self.process.stderr.readline())
        assert found
        return found[0]

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        out, err = self.process.communicate(timeout=PATIENCE)
        assert out == ""
        assert "Traceback" not in err


async def until(done: Callable[[], bool]) -> None:
    """Wait until it is so."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
