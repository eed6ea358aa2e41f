"""The MCP server as a process, called by the SDK's own client over both transports."""

import asyncio
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from assisting import PATIENCE, Connecting, Environment, over_http, over_stdio, serving, until
from forked import run_hgmem, run_python
from letters import LETTERS, QUESTION, SENTENCES
from mcp import MCPError
from proxy import Proxy
from wire import Failing, Said

from hgmem import HGMem

CORE = ["ask", "continue", "search", "memory", "lineage", "status"]
FULL = [*CORE, "corpora", "evidence", "facts"]
# Characters of the list of tools as it is sent, and of what a model reads of it: names, descriptions, arguments.
MOST_CHARACTERS = {(): (10_200, 3_700), ("--full",): (12_800, 4_950), ("--full", "--write"): (13_700, 5_600)}

HARMLESS = {"type", "description", "default", "minimum", "maximum", "items", "properties", "required"}


@pytest.fixture
def letters(client: HGMem) -> HGMem:
    """A client on the letters, with the extractive model."""
    client.add_graph(LETTERS)
    return client


# Tools ----------------------------------------------------------------------------------------------------------


async def test_a_whole_question_its_memory_and_where_it_comes_from(
    connecting: Connecting, environment: Environment, letters: HGMem
) -> None:
    async with connecting(environment, "-c", letters.corpus, "--owner", "anna") as call:
        answer = await call("ask", question=QUESTION, steps=2)
        assert answer["status"] == "answered"
        assert {one["quote"] for one in answer["quotes"]} <= set(SENTENCES)
        assert [int(mark) for mark in re.findall(r"\[(\d+)\]", answer["answer"])] == list(
            range(1, len(answer["quotes"]) + 1)
        )
        memory = await call("memory", memory=answer["memory"])
        assert memory["answer"] == answer["answer"]
        first = memory["points"][0]
        origin = await call("lineage", point=first["point"])
        assert origin["points"][0]["statement"] == first["statement"]
        assert origin["points"][0]["documents"] == ["Letters"]
        assert any(quote["quote"] in text["text"] for quote in answer["quotes"] for text in origin["passages"])
        further = await call("continue", memory=answer["memory"], question="And who left the harbour?", steps=1)
        assert (further["memory"], further["steps"]) == (answer["memory"], 3)
        assert (await call("lineage", point=first["point"]))["passages"] == origin["passages"]
        state = await call("status")
        assert [one.split(",")[:2] for one in state["memories"]] == [[f"{answer['memory']} answered", " 3 steps"]]
        assert (state["counts"]["documents"], state["titles"]) == (1, ["Letters"])
        found = await call("search", query="lamps of the pier", limit=1)
        assert [one["text"] for one in found["passages"]] == ["Eve counts the lamps of the pier."]
        assert found["passages"][0]["chunk"] >= 0
        assert found["more"] == "skip=1 shows more"
        assert (await call("search", query="lamps of the pier", limit=1, skip=1))["passages"] != found["passages"]
        assert state["model"] == "no language model: answers quote sentences, chosen by rules"
        assert state["model"] in further["notes"]
        said = f"memory {answer['memory']!r} has no unfinished question: pass one, or show its answer with memory"
        assert await call.refused("continue", memory=answer["memory"]) == said
        last = await call("memory", memory=answer["memory"])
        assert (last["question"], last["earlier"]) == ("And who left the harbour?", [f"steps 1-2: {QUESTION}"])
        first = await call("memory", memory=answer["memory"], step=1)
        assert (first["status"], first["question"], "answer" in first) == ("unfinished", QUESTION, False)
        assert (await call("memory", memory=answer["memory"], step=2))["answer"] == answer["answer"]

    assert letters.memory(answer["memory"]).owner == "anna"
    assert [one.uid for one in letters.memories()] == [answer["memory"]]  # searching left none


async def test_resources_are_texts(environment: Environment, letters: HGMem) -> None:
    answer = letters.ask(QUESTION, owner="anna", steps=1)
    async with over_stdio(environment, "-c", letters.corpus, "--owner", "anna") as call:
        uris = [str(one.uri) for one in (await call.client.list_resources()).resources]
        assert uris == [f"hgmem://corpora/{letters.corpus}", "hgmem://schema"]
        overview = await call.read(uris[0])
        assert "- Letters" in overview
        assert answer.memory in overview
        memory = await call.read(f"hgmem://memories/{answer.memory}")
        assert answer.text in memory
        assert all(point.description in memory for point in letters.memory(answer.memory).points)
        assert "(:MemoryPoint)-[:INVOLVES]->(:Entity)" in await call.read("hgmem://schema")
        with pytest.raises(MCPError, match=r"memory, point or answer 'm0' not found: .*"):
            await call.read("hgmem://memories/m0")


async def test_what_is_told_meanwhile_is_numbered_upwards(
    connecting: Connecting, scripted: Any, letters: HGMem
) -> None:
    _, environment = scripted({})
    async with connecting(environment, "-c", letters.corpus) as call:
        answer = await call("ask", question=QUESTION, steps=2)
        await until(lambda: any("answer" in (line or "") for _, line in call.heard))
    numbers = [number for number, _ in call.heard]
    assert numbers == sorted(set(numbers))
    lines = [line for _, line in call.heard]
    assert lines[0] == f"memory {answer['memory']}"
    assert [line for line in lines if "stored" in str(line)] == ["step 1 is stored", "step 2 is stored"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])  # legacy: the protocol that began with a handshake
async def test_a_cancelled_question_calls_no_model_any_more_and_goes_on_later(
    mode: str, connecting: Connecting, scripted: Any, letters: HGMem
) -> None:
    server, environment = scripted({"step": [None, Said('{"insert": []}', delay=2)]})
    async with connecting(environment, "-c", letters.corpus, mode=mode) as call:
        asking = asyncio.create_task(call("ask", question=QUESTION, steps=3))
        await until(lambda: len(server.requests) == 4)  # a probe, the first look, the first step, and the second
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: letters.memories()[0].status == "interrupted")
        assert len(server.requests) == 4
        (line,) = (await call("status"))["memories"]
        uid, status = re.findall(r"\w+", line)[:2]
        assert status == "unfinished"
        assert letters.memory(uid).step in (1, 2)  # the second is stored if its reply came in time
        answer = await call("continue", memory=uid)
        assert (answer["status"], answer["memory"]) == ("answered", uid)


async def test_a_question_that_takes_too_long_returns_its_memory_which_goes_on(scripted: Any, letters: HGMem) -> None:
    _, environment = scripted({"step": [None, Said('{"insert": []}', delay=6)]})
    async with over_stdio(environment, "-c", letters.corpus, "--seconds", "5") as call:
        left = answer = await call("ask", question=QUESTION, steps=3)
        assert left["status"] == "unfinished"
        assert left["more"] == "5 s are up: call continue with this memory and no question to go on"
        for _ in range(20):  # the first waits for the model's reply to the call before
            if answer["status"] == "unfinished":
                answer = await call("continue", memory=left["memory"], steps=1)
    assert (answer["status"], answer["memory"]) == ("answered", left["memory"])


async def test_others_memories_are_as_if_they_were_not_there(
    connecting: Connecting, environment: Environment, letters: HGMem
) -> None:
    his, ours = (letters.ask(QUESTION, owner=owner, steps=1) for owner in ("ben", None))
    point = his.points[0].uid
    async with connecting(environment, "-c", letters.corpus, "--owner", "anna", "--full") as call:
        for tool, argument, uid in (
            ("memory", "memory", his.memory),
            ("evidence", "memory", his.memory),
            ("lineage", "point", point),
            ("continue", "memory", his.memory),
        ):
            said = await call.refused(tool, **{argument: uid})
            assert said == (await call.refused(tool, **{argument: "m0"})).replace("m0", uid)
        with pytest.raises(MCPError, match="not found"):
            await call.read(f"hgmem://memories/{his.memory}")
        state = await call("status")
        assert ([one.split()[0] for one in state["memories"]], state["counts"]["memories"]) == ([ours.memory], 1)
        assert his.memory not in await call.read(f"hgmem://corpora/{letters.corpus}")
        said = await call.refused("continue", memory=ours.memory, question="And?")
        assert said == f"memory {ours.memory!r} is everybody's: ask a new question, or start the server with --write"
        said = await call.refused("ask", question=QUESTION, owner="ben")
        assert said == "tool 'ask' has no argument 'owner': choose from question, corpus, where, steps"
    assert len(letters.memory(ours.memory).steps) == 1


async def test_more_tools_read_and_writing_is_asked_for(environment: Environment, letters: HGMem) -> None:
    ours = letters.ask(QUESTION, steps=1)
    async with over_stdio(environment, "-c", letters.corpus, "--owner", "anna", "--full", "--write") as call:
        assert letters.corpus in (await call("corpora"))["result"]
        (passage,) = (await call("evidence", memory=ours.memory, limit=1))["passages"]
        assert passage["document"] == "Letters"
        assert "has no build 'hypermem': make it with" in await call.refused("facts")
        said = {"conversation": "chat", "speaker": "Ann", "text": "The red ferry sails at nine.", "message": "m1"}
        assert (await call("remember", **said))["result"] == "appended to the new conversation 'chat'"
        assert (await call("remember", **said))["result"] == "known already in conversation 'chat'"
        (found,) = (await call("search", query="red ferry", limit=1))["passages"]
        assert "The red ferry sails at nine." in found["text"]
        assert (await call("continue", memory=ours.memory, question="And who left?", steps=1))["steps"] == 2


# The list of tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", MOST_CHARACTERS)
async def test_the_tools_are_few_small_and_say_what_they_do(
    arguments: tuple[str, ...], environment: Environment, letters: HGMem
) -> None:
    async with over_stdio(environment, "-c", letters.corpus, *arguments) as call:
        tools = (await call.client.list_tools()).tools
    sent = [one.model_dump(by_alias=True, exclude_none=True) for one in tools]
    read = [{name: one[name] for name in ("name", "description", "inputSchema")} for one in sent]
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    for value, most, row in zip((sent, read), MOST_CHARACTERS[arguments], ("the whole list", "names,"), strict=True):
        characters = len(json.dumps(value, separators=(",", ":")))
        assert characters <= most
        assert f"{characters:,}" in next(line for line in page.splitlines() if line.startswith(f"| {row}"))
    names = {one.name for one in tools}
    assert names == {*(FULL if arguments else CORE), *(["remember"] if "--write" in arguments else [])}
    adding = {one.name for one in tools if not one.annotations.read_only_hint}
    assert adding == {"ask", "continue", "remember"} & names
    assert not any(one.annotations.destructive_hint for one in tools)
    for one in tools:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one.name)
        assert 0 < len(one.description) <= 1_024
        assert one.input_schema["additionalProperties"] is False
        assert not list(faults({name: value for name, value in one.input_schema.items() if name[0] != "a"}))
        assert one.output_schema["type"] == "object"


def faults(schema: Any) -> Iterator[str]:
    """Yield what OpenAI's function calling refuses, or takes in no strict form, in a schema of arguments."""
    yield from (f"{name} is not supported" for name in schema if name not in HARMLESS)
    if schema.get("type") not in ("object", "array", "string", "integer", "number", "boolean"):
        yield f"no type: {schema}"
    if schema.get("type") == "object":
        if "properties" not in schema:
            yield f"no properties: {schema}"
        for one in schema.get("properties", {}).values():
            yield from faults(one)
    if schema.get("type") == "array":
        yield from faults(schema.get("items", {}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"anyOf": [{"type": "string"}]},
        {"type": "object", "properties": {"a": {"type": "string", "format": "path"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
    ],
)
def test_a_schema_that_is_refused_elsewhere_is_noticed(schema: Any) -> None:
    assert list(faults(schema))


# What is wrong --------------------------------------------------------------------------------------------------


async def test_what_is_wrong_with_a_call_is_one_line(environment: Environment, letters: HGMem) -> None:
    async with over_stdio(environment, "-c", letters.corpus) as call:
        for tool, arguments, said in (
            ("nix", {}, "there is no tool 'nix': choose from ask, continue, search, memory, lineage, status"),
            ("ask", {}, "argument 'question' of tool 'ask' is not valid: field required"),
            ("ask", {"question": " "}, "the question is empty: enter a question"),
            ("ask", {"question": "?", "steps": -1}, "argument 'steps' of tool 'ask' is not valid: input should be"),
            ("ask", {"question": "?", "corpus": "no-such"}, "corpus 'no-such' not found"),
            ("status", {"corpus": "no-such"}, "corpus 'no-such' not found: pass corpus, one of "),
            ("ask", {"question": "?", "where": ["title"]}, "invalid where 'title': use KEY=VALUE"),
            (
                "search",
                {"query": "?", "where": "title=No*"},
                "argument 'where' of tool 'search' is not valid: use a li",
            ),
            ("search", {"query": " "}, "the query is empty: enter what to look for"),
            ("search", {"query": "x", "where": ["title=No*"]}, f"no document of corpus {letters.corpus!r} has title"),
            ("search", {"query": "x", "limit": 51}, "argument 'limit' of tool 'search' is not valid: input should be"),
            ("memory", {"memory": ""}, "memory, point or answer '' not found"),
            ("lineage", {"point": "p" * 5_000}, "memory, point or answer 'ppp"),
            ("lineage", {"point": "p0"}, "memory, point or answer 'p0' not found: list points with memory"),
            ("remember", {}, "there is no tool 'remember' here: start the server with --full --write, or choose from"),
        ):
            line = await call.refused(tool, **arguments)
            assert line.startswith(said), line
    assert letters.memories() == []


async def test_a_model_that_is_gone_is_one_line_with_the_memory(scripted: Any, letters: HGMem) -> None:
    _, environment = scripted({"evolve": Failing(401, "no such key")})
    async with over_stdio(environment, "-c", letters.corpus) as call:
        said = await call.refused("ask", question=QUESTION, steps=2)
    (memory,) = letters.memories()
    assert said.endswith(f"(memory {memory.uid!r} can be continued)")


async def test_a_database_that_is_gone_is_one_line_and_all_is_well_when_it_is_back(
    environment: Environment, letters: HGMem
) -> None:
    with Proxy(environment["NEO4J_URI"]) as line:
        async with over_http({**environment, "NEO4J_URI": line.uri}, "-c", letters.corpus) as call:
            await call("status")
            line.cut_for_good()
            for tool, arguments in (("status", {}), ("ask", {"question": QUESTION}), ("search", {"query": "x"})):
                assert "Neo4j" in await call.refused(tool, **arguments)
            line.mend()
            assert (await call("ask", question=QUESTION, steps=1))["status"] == "answered"


def test_stdout_carries_nothing_but_the_protocol(environment: Environment, letters: HGMem) -> None:
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"name": "ask", "arguments": {"question": QUESTION, "steps": 1}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    command = [sys.executable, "-m", "hgmem", "mcp", "-c", letters.corpus]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    for line in sent:
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
    heard = [json.loads(process.stdout.readline()) for _ in range(2)]
    out, err = process.communicate("no JSON\n", timeout=PATIENCE)
    assert [one["id"] for one in heard] == [1, 2]
    assert heard[1]["result"]["structuredContent"]["status"] == "answered"
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert (process.returncode, err) == (0, "")


def test_being_told_to_end_ends_a_server_whose_client_stays(environment: Environment, letters: HGMem) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hgmem", "mcp", "-c", letters.corpus],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
    process.stdin.flush()
    process.stdout.readline()
    process.terminate()
    assert process.wait(PATIENCE) == 130
    assert process.stderr
    assert "Traceback" not in process.stderr.read()


def test_a_server_in_python_says_nothing_of_refused_calls(environment: Environment, letters: HGMem) -> None:
    code = f"""
import asyncio
from mcp import Client
from hgmem import HGMem
from hgmem.mcp import make_server

async def call(hg):
    async with Client(make_server(hg)) as client:
        for query in ("lamps", " "):
            print((await client.call_tool("search", {{"query": query}})).is_error)

with HGMem.open({letters.corpus!r}) as hg:
    asyncio.run(call(hg))
"""
    done = run_python("-c", code, env=environment)
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")


def test_only_this_machine_is_served(environment: Environment, letters: HGMem) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org", ""):
        done = run_hgmem("mcp", "--http", "--host", host, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: host {host!r} is not this machine, and the server asks nobody for a key")
        assert done.stderr.count("\n") == 1
    for option, value in (("--host", "0.0.0.0"), ("--port", "9")):
        done = run_hgmem("mcp", option, value, env=environment)
        assert done.returncode == 2
        assert f"Invalid value for {option}: is for --http" in done.stderr
    with serving(environment, "-c", letters.corpus) as address:
        port = address.split(":")[2].removesuffix("/mcp")
        done = run_hgmem("mcp", "--http", "--port", port, env=environment)
        assert done.returncode == 1
        taken = os.strerror(errno.EADDRINUSE)
        assert done.stderr == f"error: cannot listen on port {port} of '127.0.0.1' ({taken}): pass another --port\n"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accepts = {"Accept": "application/json, text/event-stream"}
        for header, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
            assert httpx2.post(address, json=body, headers={**accepts, **header}).status_code == status


def test_without_the_package_the_command_says_what_to_install(environment: Environment) -> None:
    code = "import sys; sys.modules['mcp'] = None; from hgmem.cli import main; sys.argv = ['hgmem', 'mcp']; main()"
    done = run_python("-c", code, env=environment)
    said = "error: hgmem.mcp needs mcp, which is not installed: run pip install 'hgmem[mcp]'\n"
    assert (done.returncode, done.stderr) == (1, said)
