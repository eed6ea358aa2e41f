"""A server in a container: the official image, its store in the data directory like any other's."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import GraphError
from hgmem.local.machine import Sizes
from hgmem.local.process import meaningful
from hgmem.local.state import USERNAME, Home, Kind, Record, Report, write_secret
from hgmem.resources import resource

ASK_SECONDS = 5.0
PULL_SECONDS = 1800.0
STOP_SECONDS = 60.0


def engine() -> str | None:
    """Return the version of the Docker engine that answers, or None where none does within seconds."""
    if shutil.which("docker") is None:
        return None
    try:
        done = _docker("info", "--format", "{{.ServerVersion}}", seconds=ASK_SECONDS)
    except GraphError:
        return None
    version = done.stdout.strip()
    return version if done.returncode == 0 and version else None


def has_compose() -> bool:
    """Whether the client knows `compose`, which some distributions ship apart."""
    try:
        return _docker("compose", "version", seconds=ASK_SECONDS).returncode == 0
    except GraphError:
        return False


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """Runs servers as containers, one for each data directory."""

    @property
    def kind(self) -> Kind:
        """The name of this way in `server.json`."""
        return "docker"

    def prepare(self, report: Report) -> None:
        """Fetch the image, once; a start then takes seconds."""
        image = _image()
        if _docker("image", "inspect", image, seconds=ASK_SECONDS).returncode == 0:
            return
        report(f"fetching the image {image}, once")
        _must("pull", "--quiet", image, seconds=PULL_SECONDS)

    def launch(self, home: Home, *, record: Record, sizes: Sizes) -> None:
        """Start the container; the server is on its way, not ready, when this returns."""
        home.store.mkdir(mode=0o700, exist_ok=True)
        write_secret(_environment(home), variables(home, record, sizes, user=_user()))
        _must(*_compose(home), "up", "--detach", "--force-recreate", seconds=PULL_SECONDS)

    def pid(self, home: Home) -> int | None:
        """Return None: the process is the engine's."""
        return None

    def running(self, home: Home) -> bool:
        """Whether the container of this data directory runs."""
        try:
            done = _docker("inspect", "--format", "{{.State.Running}}", container(home), seconds=ASK_SECONDS)
        except GraphError:  # no engine, no container
            return False
        return done.returncode == 0 and done.stdout.strip() == "true"

    def stop(self, home: Home) -> bool:
        """Stop and remove the container, which leaves the store; whether it ran."""
        ran = self.running(home)
        if _environment(home).exists():
            _must(*_compose(home), "down", "--timeout", "30", seconds=STOP_SECONDS)
        return ran

    def last_words(self, home: Home) -> str:
        """Return the line of the container's log that says best why the server ended."""
        done = _docker("logs", "--tail", "200", container(home), seconds=ASK_SECONDS)
        return meaningful((done.stdout + done.stderr).splitlines())

    def log(self, home: Home) -> str:
        """Return where to read on."""
        return f"`docker logs {container(home)}`"


def container(home: Home) -> str:
    """Return the name of the container that belongs to a data directory."""
    return f"hgmem-{hashlib.sha256(str(home.path).encode()).hexdigest()[:12]}"


def variables(home: Home, record: Record, sizes: Sizes, *, user: str) -> str:
    """Return the file that fills in `docker/compose.yaml`."""
    values = {
        "HGMEM_CONTAINER": container(home),
        "HGMEM_USER": user,
        "HGMEM_STORE": str(home.store),
        "HGMEM_AUTH": f"{USERNAME}/{record.password}",
        "HGMEM_BOLT": str(record.bolt),
        "HGMEM_HTTP": str(record.http),
        "HGMEM_HEAP": sizes.heap,
        "HGMEM_PAGECACHE": sizes.pagecache,
    }
    # Single quotes: compose would replace $names inside anything else.
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def _user() -> str:
    # The store should belong to whoever owns the directory. A rootless engine maps its root to that user, and
    # any other number to nobody; there the image starts as root and takes care of the rights by itself.
    options = _docker("info", "--format", "{{.SecurityOptions}}", seconds=ASK_SECONDS).stdout
    return "0:0" if "rootless" in options else f"{os.getuid()}:{os.getgid()}"


def _image() -> str:
    lines = resource("docker", "compose.yaml").read_text().splitlines()
    return next(line.split("image:")[1].strip() for line in lines if "image:" in line)


def _compose(home: Home) -> list[str]:
    file = resource("docker", "compose.yaml")
    name = container(home)
    return ["compose", "--project-name", name, "--env-file", str(_environment(home)), "--file", str(file)]


def _environment(home: Home) -> Path:
    return home.path / "run" / "compose.env"


def _must(*arguments: str, seconds: float) -> None:
    done = _docker(*arguments, seconds=seconds)
    if done.returncode != 0:
        why = meaningful(done.stderr.splitlines())
        raise GraphError(f"Docker could not start Neo4j: {why}; or set NEO4J_URI to a server that runs")


def _docker(*arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    # The environment goes along: DOCKER_HOST and the like say where the engine is.
    command = [shutil.which("docker") or "docker", *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphError(f"Docker does not answer: {error}; start its engine", retryable=True) from error
