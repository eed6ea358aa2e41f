import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hgmem.errors import GraphError
from hgmem.local.java import Java
from hgmem.local.machine import Sizes
from hgmem.local.process import JavaEngine, command_line, configuration, meaningful, quoted, server_arguments
from hgmem.local.state import Home, Record
from hgmem.settings import Settings

RECORD = Record(password="n-secret", bolt=17687, http=17474, kind="maven", version="2026.09.0")
SIZES = Sizes(heap="2g", pagecache="256m")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "my home")
    home.claim()
    return home


def test_every_listener_is_on_the_loopback() -> None:
    listeners = [line for line in configuration(RECORD, SIZES).splitlines() if "_address=" in line]
    assert len(listeners) == 5
    assert all(line.split("=")[1].startswith("127.0.0.1") for line in listeners)


def test_no_setting_is_said_twice() -> None:
    names = [line.split("=")[0] for line in configuration(RECORD, SIZES).splitlines()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("version", "allowed"), [(21, False), (24, True), (25, True)])
def test_java_is_told_only_what_its_version_knows(home: Home, version: int, allowed: bool) -> None:
    runtime = Java(home=Path("/java"), version=version, vectors=False)
    arguments = server_arguments(home, SIZES, runtime=runtime, lib=Path("/lib"))
    assert ("--sun-misc-unsafe-memory-access=allow" in arguments) is allowed
    assert "-Xmx2g" in arguments


@pytest.mark.parametrize("vectors", [True, False])
def test_the_vector_module_is_asked_for_where_it_exists(home: Home, vectors: bool) -> None:
    runtime = Java(home=Path("/java"), version=25, vectors=vectors)
    arguments = server_arguments(home, SIZES, runtime=runtime, lib=Path("/lib"))
    assert ("--add-modules=jdk.incubator.vector" in arguments) is vectors


def test_arguments_with_spaces_and_quotes_stay_one_argument() -> None:
    assert quoted(["-cp", 'a b/"c"\\d#e']) == '"-cp"\n"a b/\\"c\\"\\\\d#e"\n'


@pytest.mark.parametrize("text", ["", "many", "999999999"])
def test_a_stale_process_number_is_no_server(home: Home, text: str) -> None:
    (home.path / "run" / "neo4j.pid").write_text(text)
    assert JavaEngine(Settings()).pid(home) is None


def test_a_number_that_a_stranger_got_is_no_server_and_is_not_stopped(home: Home) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (home.path / "run" / "neo4j.pid").write_text(str(stranger.pid))
        assert JavaEngine(Settings()).stop(home) is False
        assert stranger.poll() is None
        stranger.kill()


@pytest.fixture
def server(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """A fake server: a process with a server's command line and pid."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", f"@{home.path / 'run' / 'server.args'}"]
    with subprocess.Popen(command) as process:
        (home.path / "run" / "neo4j.pid").write_text(str(process.pid))
        yield process
        process.kill()


def test_a_server_has_ended_once_it_is_dead_whoever_collects_it(
    home: Home, server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil.Process, "terminate", psutil.Process.kill)  # Python may not be ready for a signal
    assert JavaEngine(Settings()).stop(home) is True
    assert psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE
    assert not (home.path / "run" / "neo4j.pid").exists()


def test_a_server_of_another_user_is_left_and_the_error_says_who_can_stop_it(
    home: Home, server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "terminate", denied)
    with pytest.raises(GraphError, match=f"process {server.pid}. is another user's: stop it as that user"):
        JavaEngine(Settings()).stop(home)
    assert server.poll() is None


def test_a_dead_process_that_nobody_buried_has_no_command_line() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert command_line(psutil.Process(child.pid)) == []
    finally:
        child.wait()


def test_a_living_process_has_its_command_line() -> None:
    assert any("pytest" in part or "python" in part for part in command_line(psutil.Process()))


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([], "no output"),
        (["Could not reserve enough space", "Error: A fatal exception has occurred. Program will exit."],
         "Could not reserve enough space"),
        (["2026-11-21 18:10:48.606+0000 ERROR Invalid memory configuration", "2026-11-21 18:10:49.000+0000 INFO  x"],
         "Invalid memory configuration"),
        (["java.lang.RuntimeException: no start", "\tat a.b.c(D.java:1)", "Caused by: Outer", "\tat a.b",
          "Caused by: java.net.BindException: Address already in use", "\t... 3 more"],
         "Caused by: java.net.BindException: Address already in use"),
    ],
)  # fmt: skip
def test_the_line_that_names_the_cause_is_the_one_shown(lines: list[str], cause: str) -> None:
    assert meaningful(lines) == cause
