import re
import subprocess
from pathlib import Path

import pytest

from hgmem.errors import GraphError
from hgmem.local import docker, java
from hgmem.local.machine import Sizes
from hgmem.local.process import configuration
from hgmem.local.state import Home, Record
from hgmem.text.resources import resource

RECORD = Record(password="n-secret", bolt=17687, http=17474, kind="docker", version="2026.09.0")
SIZES = Sizes(heap="2g", pagecache="256m")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.claim()
    return home


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker client that records its commands and does nothing."""
    program = tmp_path / "docker"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    program.chmod(0o755)
    monkeypatch.setattr(docker.shutil, "which", lambda name: str(program))
    return tmp_path / "calls"


def test_the_image_is_the_version_that_the_jars_are() -> None:
    assert docker._image() == f"neo4j:{java.VERSION}"


def test_every_port_is_published_on_the_loopback_alone() -> None:
    text = resource("docker", "compose.yaml").read_text()
    published = re.findall(r"^ +- (\S+):(?:7687|7474)$", text, flags=re.MULTILINE)
    assert len(published) == 2
    assert all(address.startswith("127.0.0.1:") for address in published)


def test_all_that_compose_asks_for_is_given(home: Home) -> None:
    asked = set(re.findall(r"\$\{(\w+)", resource("docker", "compose.yaml").read_text()))
    given = docker.variables(home, RECORD, SIZES, user="1000:1000")
    assert {line.split("=")[0] for line in given.splitlines()} == asked


def test_a_container_shows_signs_of_life_as_often_as_a_process() -> None:
    text = resource("docker", "compose.yaml").read_text()
    container = dict(re.findall(r'NEO4J_server_bolt_(connection__keep__alive\w*): "?(\w+)"?$', text, re.MULTILINE))
    process = configuration(RECORD, SIZES)
    found = dict(re.findall(r"server\.bolt\.(connection_keep_alive\w*)=(\w+)$", process, re.MULTILINE))
    assert len(found) == 4
    assert {name.replace("__", "_"): value for name, value in container.items()} == found


def test_each_data_directory_has_a_container_of_its_own(tmp_path: Path) -> None:
    one, two = Home.at(tmp_path / "one"), Home.at(tmp_path / "two")
    assert docker.container(one) == docker.container(Home.at(tmp_path / "x" / ".." / "one"))
    assert docker.container(one) != docker.container(two)


def test_a_launch_shows_the_password_to_nobody(home: Home, calls: Path) -> None:
    docker.DockerEngine().launch(home, record=RECORD, sizes=SIZES)
    environment = home.path / "run" / "compose.env"
    assert "n-secret" not in calls.read_text()
    assert "n-secret" in environment.read_text()
    assert environment.stat().st_mode & 0o077 == 0


def test_a_stop_removes_the_container_and_not_the_store(home: Home, calls: Path) -> None:
    docker.DockerEngine().launch(home, record=RECORD, sizes=SIZES)
    docker.DockerEngine().stop(home)
    last = calls.read_text().splitlines()[-1]
    assert " down " in last
    assert "--volumes" not in last
    assert home.store.is_dir()


def test_an_engine_that_hangs_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*command: object, **rest: object) -> None:
        raise subprocess.TimeoutExpired("docker", 5)

    monkeypatch.setattr(docker.shutil, "which", lambda name: "/usr/bin/docker")
    monkeypatch.setattr(docker.subprocess, "run", hang)
    assert docker.engine() is None
    assert not docker.has_compose()


def test_a_client_without_an_engine_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(docker.shutil, "which", lambda name: str(program))
    assert docker.engine() is None


def test_what_docker_complains_of_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho starting >&2; echo 'Bind failed: port is already allocated' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(docker.shutil, "which", lambda name: str(program))
    with pytest.raises(GraphError, match="port is already allocated") as caught:
        docker.DockerEngine().launch(home, record=RECORD, sizes=SIZES)
    assert "\n" not in str(caught.value)
