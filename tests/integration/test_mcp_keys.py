"""The MCP server by HTTP with keys: each caller's owner, scopes, corpora and limits are those of its key."""

import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from forked import run_hgmem
from letters import LETTERS, QUESTION
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from proxy import Proxy

from hgmem import HGMem
from hgmem.client.serving import ServiceStore
from hgmem.values.access import Key

ACCEPTS = {"Accept": "application/json, text/event-stream"}


@dataclass
class Keyed:
    """A server that asks for keys, its line to the database, a client of that, and keys with their tokens by owner."""

    address: str
    line: Proxy
    client: HGMem
    keys: dict[str, tuple[str, Key]]
    log: Path

    @asynccontextmanager
    async def caller(self, owner: str, mode: str = "auto") -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.keys[owner][0]}"} if owner else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.address, http_client=http), mode=mode) as client,
        ):
            yield client


@pytest.fixture
def keyed(client: HGMem, environment: dict[str, str], tmp_path: Path) -> Iterator[Keyed]:
    client.add_graph(LETTERS)
    store, here = ServiceStore(client), [client.corpus]
    keys = {
        "anna": store.make_key("anna", corpora=here, questions_per_minute=50),
        "ben": store.make_key("ben", corpora=here),
        "hasty": store.make_key("hasty", corpora=here, questions_per_minute=1),
        "reader": store.make_key("reader", scopes=["read"], corpora=here),
        "writer": store.make_key("writer", scopes=["write"], corpora=here),
        "afar": store.make_key("afar", corpora=["another"]),
        "root": store.make_key("root", scopes=["admin"]),
    }
    command = [*(sys.executable, "-m", "hgmem", "mcp", "--http", "--port", "0", "--keys", "--full", "--write")]
    command += ["-c", client.corpus, "--host", "0.0.0.0", "--access-log", str(tmp_path / "log")]
    with Proxy(environment["NEO4J_URI"]) as line:
        there = {**environment, "NEO4J_URI": line.uri}
        process = subprocess.Popen(command, env=there, stderr=subprocess.PIPE, text=True)
        assert process.stderr
        found = re.search(r"http://0\.0\.0\.0:(\d+)/mcp", process.stderr.readline())
        assert found
        try:
            yield Keyed(f"http://127.0.0.1:{found[1]}/mcp", line, client, keys, tmp_path / "log")
        finally:
            process.terminate()
            assert "Traceback" not in process.communicate(timeout=60)[1]
        for _, key in keys.values():
            store.revoke_key(key.uid)


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the result of a call, or the line that says what is wrong."""
    done = await client.call_tool(tool, arguments)
    return done.content[0].text if done.is_error else done.structured_content


async def refused(keyed: Keyed, owner: str, said: str) -> None:
    """Check that the client's user is told this when it connects with the key of `owner`, or without one."""
    told = pytest.RaisesExc(MCPError, match=f"^{re.escape(said)}$")
    with pytest.RaisesGroup(told, flatten_subgroups=True):
        async with keyed.caller(owner):
            pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_key_is_the_owner_of_what_it_asks_and_does_what_it_may(keyed: Keyed, mode: str) -> None:
    async with keyed.caller("anna", mode) as anna:
        asked = await called(anna, "ask", question=QUESTION, steps=1)
        point = (await called(anna, "memory", memory=asked["memory"]))["points"][0]["point"]
        assert (await called(anna, "lineage", point=point))["points"]
        assert [one.split()[0] for one in (await called(anna, "status"))["memories"]] == [asked["memory"]]
        assert (await called(anna, "corpora"))["result"] == [keyed.client.corpus]
        assert "does not reach corpus 'another'" in await called(anna, "search", query="x", corpus="another")
        assert "lacks the scope 'write'" in await called(
            anna, "remember", conversation="c", speaker="Ann", text="Hello."
        )
    assert keyed.client.memory(asked["memory"]).owner == "anna"
    nobodys = keyed.client.ask(QUESTION, steps=1).memory
    async with keyed.caller("ben", mode) as ben:
        for tool, name, uid in (
            *(
                (tool, "memory", uid)
                for tool in ("memory", "evidence", "continue")
                for uid in (asked["memory"], nobodys)
            ),
            ("lineage", "point", point),
        ):
            said = await called(ben, tool, **{name: uid})
            listed = "points with memory" if tool == "lineage" else "memories with status"
            assert said == f"memory, point or answer {uid!r} not found: list {listed}"
        with pytest.raises(MCPError, match="not found"):
            await ben.read_resource(f"hgmem://memories/{asked['memory']}")
        overview = (await ben.read_resource(f"hgmem://corpora/{keyed.client.corpus}")).contents[0].text
        assert asked["memory"] not in overview
        assert "## 0 memories" in overview
        state = await called(ben, "status")
        assert ("memories" in state, state["counts"]["memories"]) == (False, 0)
    async with keyed.caller("reader", mode) as reader:
        assert (await called(reader, "search", query="lamps of the pier", limit=1))["passages"]
        refused = "this key lacks the scope 'ask' (it has read): use another key"
        assert await called(reader, "ask", question=QUESTION) == refused
    async with keyed.caller("writer", mode) as writer:
        assert "appended" in (await called(writer, "remember", conversation="c", speaker="Ann", text="Hi."))["result"]
        assert "lacks the scope 'read'" in await called(writer, "status")
    async with keyed.caller("afar", mode) as afar:
        assert "does not reach corpus" in await called(afar, "ask", question=QUESTION)
        assert (await called(afar, "corpora"))["result"] == []
        assert "there is no tool 'nix'" in await called(afar, "nix")
        assert "has no argument 'x'" in await called(afar, "search", query="x", x=1)
        with pytest.raises(MCPError, match="does not reach corpus"):
            await afar.read_resource(f"hgmem://corpora/{keyed.client.corpus}")
    async with keyed.caller("root", mode) as root:
        assert (await called(root, "continue", memory=asked["memory"], question="And who left?", steps=1))["steps"] == 2
    assert keyed.client.memory(asked["memory"]).owner == "anna"
    lines = [json.loads(line) for file in keyed.log.iterdir() for line in file.read_text().splitlines()]
    assert {"tool", "owner", "key", "memory", "done", "seconds", "time"} <= {name for one in lines for name in one}
    assert [one["done"] for one in lines if one.get("owner") == "reader"] == [True, False]
    assert QUESTION not in json.dumps(lines)
    here, far = keyed.client.corpus, [one for one in lines if one.get("owner") == "afar" and "tool" in one]
    logged = [("ask", here), ("corpora", None), ("nix", None), ("search", here)]
    assert [(one["tool"], one.get("corpus")) for one in far] == logged
    assert [one["done"] for one in far] == [False, True, False, False]


async def test_who_has_no_key_or_a_revoked_one_is_refused_with_a_line(keyed: Keyed) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    def sent(token: str, **headers: str) -> tuple[int, str]:
        given = {**ACCEPTS, **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        response = httpx2.post(keyed.address, json=body, headers=given)
        return response.status_code, response.text

    assert sent("")[0] == 401
    assert "a key is missing: send it as Authorization: Bearer" in sent("")[1]
    assert "this key is not known" in sent("hgm_no")[1]
    token, key = keyed.keys["anna"]
    for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        assert sent(token, **headers)[0] == status
    async with keyed.caller("anna") as anna:
        await called(anna, "status")
        ServiceStore(keyed.client).revoke_key(key.uid)
        until = time.monotonic() + 5
        while sent(token)[0] != 401:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert "this key is revoked" in sent(token)[1]
    lines = [json.loads(line) for file in keyed.log.iterdir() for line in file.read_text().splitlines()]
    strangers = [(one["done"], one["key"], one["client"]) for one in lines if one.get("status") == 401]
    assert strangers[:3] == [(False, "", "127.0.0.1")] * 3
    assert "hgm_" not in json.dumps(lines)
    await refused(keyed, "", "a key is missing: send it as Authorization: Bearer hgm_…")
    await refused(keyed, "anna", "this key is revoked: make another with `hgmem keys make`")


async def test_beyond_a_limit_a_question_is_refused_and_a_refused_one_does_not_count(keyed: Keyed) -> None:
    over = r"this key is limited to 1 questions a minute: try again in \d+ seconds"
    async with keyed.caller("hasty") as hasty:
        asked = await called(hasty, "ask", question=QUESTION, steps=1)
        said = [await called(hasty, "continue", memory=asked["memory"]) for _ in range(2)]
        assert all("has no unfinished question" in one for one in said)
        further = [await called(hasty, "continue", memory=asked["memory"], question="And?", steps=1) for _ in range(2)]
        assert any(re.fullmatch(over, str(one)) for one in further)  # the minute may have ended between
        assert (await called(hasty, "memory", memory=asked["memory"]))["answer"]


async def test_while_the_database_is_away_callers_are_told_and_then_go_on(keyed: Keyed) -> None:
    async with keyed.caller("anna") as anna:
        await called(anna, "status")
        keyed.line.cut_for_good()
        away = "the database or a model does not answer as it should: try again, or tell the operator"
        assert await called(anna, "status") == away
        given = {**ACCEPTS, "Authorization": f"Bearer {keyed.keys['ben'][0]}"}
        response = httpx2.post(keyed.address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=given)
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        await refused(keyed, "ben", "the database does not answer at present: try again in some seconds")
        keyed.line.mend()
        assert (await called(anna, "status"))["corpus"] == keyed.client.corpus


async def test_a_session_that_another_key_began_is_not_found(keyed: Keyed) -> None:
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who}
    anna, ben = ({**ACCEPTS, "Authorization": f"Bearer {keyed.keys[name][0]}"} for name in ("anna", "ben"))
    begun = httpx2.post(keyed.address, json=first, headers=anna)
    session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert httpx2.post(keyed.address, json=listed, headers={**ben, **session}).status_code == 404
    assert httpx2.post(keyed.address, json=listed, headers={**anna, **session}).status_code == 200


def test_options_that_do_not_fit_are_refused(environment: dict[str, str], open_client: Callable[..., HGMem]) -> None:
    for words, said in (
        (["--keys"], "--keys: needs --http: pass that too"),
        (["--http", "--allow-host", "rag.example"], "--allow-host: needs --http and --keys"),
        (["--http", "--keys", "--owner", "anna"], "--owner: is that of each key"),
    ):
        done = run_hgmem("mcp", *words, env=environment)
        assert done.returncode == 2
        assert said in done.stderr
