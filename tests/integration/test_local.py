"""A real server with this module's own data directory; the tests run in order, as one life cycle of a server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import psutil
import pytest

from hgmem import local
from hgmem.errors import ConflictError, GraphError, UsageError
from hgmem.graph.server import ping
from hgmem.graph.statements import KEPT, find_statement, statements
from hgmem.local import Server, docker, java, warming
from hgmem.settings import Settings, load

pytestmark = pytest.mark.in_order

STARTER = """
import sys
from pathlib import Path
from hgmem import local
from hgmem.settings import load
print(local.up(load(data=Path(sys.argv[1])), heap="512m", pagecache="32m").pid)
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    settings = load(data=tmp_path_factory.mktemp("local") / "a höme")  # a folder name like a user's
    try:
        yield settings
    finally:
        local.down(settings)


@pytest.fixture(scope="module")
def without_docker() -> Iterator[None]:
    """Start as a process even if Docker is available: Docker has its own test."""
    try:
        found = java.find(load())
        if not (java.cached_jars(load()) or java.maven()):
            raise UsageError(f"no Maven for Java {found.version}")
    except UsageError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docker, "engine", lambda: None)
        yield


@pytest.fixture(scope="module")
def first(settings: Settings, without_docker: None) -> Server:
    """The server that two processes started at the same time; both have ended."""
    hidden = f"import hgmem.local.docker as docker; docker.engine = lambda: None\n{STARTER}"
    command = [sys.executable, "-c", hidden, str(settings.data)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    pids = [starter.communicate(timeout=300)[0].strip() for starter in starters]
    server = local.find(settings)
    assert server is not None
    assert pids == [str(server.pid)] * 2
    return server


def answers(server: Server) -> str | None:
    return ping(server.uri, username="neo4j", password=server.password.get_secret_value(), timeout=5)


def read(server: Server, query: str) -> list[object]:
    auth = (server.username, server.password.get_secret_value())
    with neo4j.GraphDatabase.driver(server.uri, auth=auth) as driver:
        return [record.value() for record in driver.execute_query(query).records]


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_two_starts_at_once_give_one_server_that_outlives_them(first: Server) -> None:
    assert answers(first) == first.version == java.VERSION
    assert first.pid is not None
    assert os.getsid(first.pid) != os.getsid(0)


def test_a_later_up_finds_the_first(first: Server, settings: Settings) -> None:
    began = time.monotonic()
    assert local.up(settings) == first
    assert time.monotonic() - began < 5


def test_a_running_server_says_that_new_sizes_must_wait(first: Server, settings: Settings) -> None:
    said: list[str] = []
    assert local.up(settings, heap="1g", report=said.append) == first
    assert "next start" in said[0]


def test_nothing_listens_beyond_the_loopback(first: Server) -> None:
    used = [each.laddr.ip for each in psutil.Process(first.pid).net_connections(kind="inet")]
    assert set(used) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert len(used) >= 2


def test_the_password_is_the_owners_alone(first: Server, settings: Settings) -> None:
    password = first.password.get_secret_value()
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert password not in shown + repr(first)
    holders = [path for path in settings.data.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
    holders = [path for path in holders if password.encode() in path.read_bytes()]
    assert [path.name for path in holders] == ["server.json"]
    assert (settings.data.stat().st_mode & 0o777, holders[0].stat().st_mode & 0o777) == (0o700, 0o600)


def test_another_password_is_refused_and_not_taken_for_silence(first: Server) -> None:
    with pytest.raises(GraphError, match="rejected user"):
        ping(first.uri, username="neo4j", password="another-one", timeout=5)


def test_an_address_without_a_server_is_silence(first: Server) -> None:
    assert ping("bolt://127.0.0.1:1", username="neo4j", password="x", timeout=1) is None


def test_a_server_plans_each_statement_of_a_question(first: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    run = neo4j.Session.run

    def noted(self: neo4j.Session, query: Any, *parameters: Any) -> neo4j.Result:
        planned.append(getattr(query, "text", query))
        return run(self, query, *parameters)

    monkeypatch.setattr(neo4j.Session, "run", noted)
    warming.main(first.data)
    explained = [query for query in planned if query.startswith("EXPLAIN")]
    assert explained[0] == f"EXPLAIN {find_statement('retrieve').query}"
    assert sorted(explained) == sorted(f"EXPLAIN {one.query}" for one in statements().values() if KEPT in one.query)


def test_planning_beside_a_start_goes_on_alone_and_ends_with_a_start_that_fails(first: Server) -> None:
    with warming.warmed(first.data) as process:
        pass
    assert process.wait(60) == 0
    with pytest.raises(GraphError), warming.warmed(first.data / "nowhere") as process:
        raise GraphError("it did not start")
    assert process.wait(10) == -signal.SIGKILL


def test_the_browser_is_served_where_its_address_says(first: Server) -> None:
    with urllib.request.urlopen(first.browser, timeout=10) as page:
        assert page.status == 200
        assert b"<title>Neo4j Browser" in page.read()


def test_a_store_that_an_unknown_process_holds_is_refused(first: Server, settings: Settings) -> None:
    number = settings.data / "run" / "neo4j.pid"
    text = number.read_text()
    number.unlink()
    try:
        with pytest.raises(ConflictError, match="in use by another Neo4j"):
            local.up(settings)
    finally:
        number.write_text(text)
    assert local.find(settings) == first


@pytest.mark.slow
def test_data_outlive_down_and_a_taken_port_is_chosen_again(first: Server, settings: Settings) -> None:
    read(first, "CREATE (:Kept {name: 'one'})")
    assert local.down(settings) is True
    assert gone(first.pid or 0)
    assert (local.find(settings), local.down(settings)) == (None, False)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(first.uri.rpartition(":")[2])))
        other.listen()
        second = local.up(settings, heap="512m", pagecache="32m")
    assert second.uri != first.uri
    assert (second.http, second.password) == (first.http, first.password)
    assert read(second, "MATCH (n:Kept) RETURN n.name") == ["one"]


@pytest.mark.slow
def test_what_a_killed_server_leaves_does_not_stop_the_next_start(first: Server, settings: Settings) -> None:
    killed = local.find(settings)
    assert killed is not None
    assert killed.pid is not None
    read(killed, "MERGE (:Kept {name: 'one'})")
    os.kill(killed.pid, signal.SIGKILL)
    assert gone(killed.pid)
    assert local.find(settings) is None
    third = local.up(settings, heap="512m", pagecache="32m")
    assert third.pid != killed.pid
    assert third.uri == killed.uri
    assert read(third, "MATCH (n:Kept) RETURN n.name") == ["one"]


def test_a_start_that_fails_says_why_and_leaves_nothing_running(without_docker: None, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"reserve enough space.*see its log .*server\.log") as caught:
        local.up(load(), data=tmp_path / "other", heap="90000g")
    assert "\n" not in str(caught.value)
    assert local.find(load(), data=tmp_path / "other") is None


def test_the_same_in_docker(tmp_path: Path) -> None:
    if docker.engine() is None or not docker.has_compose():
        pytest.skip("no Docker engine with compose answers here")
    settings = load(data=tmp_path / "home")
    try:
        server = local.up(settings, heap="512m", pagecache="32m")
        assert (server.kind, server.pid, answers(server)) == ("docker", None, java.VERSION)
        assert local.find(settings) == local.up(settings) == server
        read(server, "CREATE (:Kept {name: 'one'})")
        assert local.down(settings) is True
        assert local.find(settings) is None
        assert read(local.up(settings), "MATCH (n:Kept) RETURN n.name") == ["one"]
    finally:
        local.down(settings)
