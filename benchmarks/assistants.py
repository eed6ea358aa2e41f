"""Characters of what `hgmem mcp` sends, on the demo's corpus and without a language model.

    python benchmarks/assistants.py

`tools` are names, descriptions and arguments, which a model reads, then the whole list with the schemas of results.
`results` are those of a question, of its memory, of its points, of searches, and of the corpus. `cpu` are the CPU
seconds of a server from its start until two questions are answered.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from measures import machine
from running import access, running
from starting import CORPUS, QUESTION, cpu

from hgmem import HGMem
from hgmem.text.resources import resource

OTHER = "Who stole the orrery, and how is it known?"
PROFILES = ((), ("--full",), ("--full", "--write"))


def client(environment: Mapping[str, str], *options: str) -> Client:
    """Return a client that starts a server of its own."""
    command = ["-m", "hgmem", "mcp", "--corpus", CORPUS, "--seconds", "300", *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(environment))
    return Client(server, read_timeout_seconds=300)


async def listed(environment: Mapping[str, str], *options: str) -> tuple[int, int]:
    """Return the characters of the list of tools that a model reads, and of the whole list."""
    async with client(environment, *options) as session:
        tools = [one.model_dump(by_alias=True, exclude_none=True) for one in (await session.list_tools()).tools]
    read = [{name: one[name] for name in ("name", "description", "inputSchema")} for one in tools]
    return characters(read), characters(tools)


def characters(value: Any) -> int:
    """Return the length of a value as it is sent."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


async def told(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the characters of results, with what they hold."""
    found: dict[str, Any] = {"results": []}

    async def call(tool: str, **arguments: Any) -> Any:
        done = await session.call_tool(tool, arguments)
        assert not done.is_error, done
        value = done.structured_content or {}
        held = {name: len(each) for name, each in value.items() if isinstance(each, list)}
        found["results"].append({"tool": tool, "characters": len(done.content[0].text), **held})
        return value

    async with client(environment) as session:
        answers = [await call("ask", question=question) for question in (QUESTION, OTHER)]
        found["cpu"] = round(cpu(), 2)
        for answer in answers:
            memory = await call("memory", memory=answer["memory"])
            for point in memory["points"]:
                await call("lineage", point=point["point"])
        for query in (QUESTION, OTHER, "warehouse"):
            await call("search", query=query)
        await call("status")
    return found


def main() -> None:
    """Measure, and print the figures as JSON."""
    with running() as (server, _):
        with HGMem.open(CORPUS, **access(server)) as corpus:
            corpus.add(resource("examples", "affair"))
        password = server.password.get_secret_value()
        place = {"NEO4J_URI": server.uri, "NEO4J_USERNAME": server.username, "NEO4J_PASSWORD": password}
        environment = {**os.environ, **place}
        tools = {" ".join(options): asyncio.run(listed(environment, *options)) for options in PROFILES}
        print(json.dumps({"tools": tools, **asyncio.run(told(environment)), "machine": machine()}, indent=1))


if __name__ == "__main__":
    main()
