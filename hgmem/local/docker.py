"""Run a server in a container of the official image, with its store in the data directory."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hgmem.errors import GraphError
from hgmem.local.machine import Sizes
from hgmem.local.process import meaningful
from hgmem.local.state import USERNAME, EngineKind, Home, Record, Report, write_secret
from hgmem.text.resources import resource

ASK_SECONDS = 5.0
PULL_SECONDS = 1800.0
STOP_SECONDS = 60.0


def engine() -> str | None:
    """Return the version of the Docker engine, or None if none answers within seconds."""
    if shutil.which("docker") is None:
        return None
    try:
        done = _docker("info", "--format", "{{.ServerVersion}}", seconds=ASK_SECONDS)
    except GraphError:
        return None
    version = done.stdout.strip()
    return version if done.returncode == 0 and version else None


def has_compose() -> bool:
    """Return whether the Docker client supports `compose`, which some distributions package separately."""
    try:
        return _docker("compose", "version", seconds=ASK_SECONDS).returncode == 0
    except GraphError:
        return False


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """Runs servers as containers, one for each data directory. `kind` is its name in `server.json`."""

    kind: ClassVar[EngineKind] = "docker"

    def prepare(self, report: Report) -> None:
        """Pull the image unless it is present."""
        image = _image()
        if _docker("image", "inspect", image, seconds=ASK_SECONDS).returncode == 0:
            return
        report(f"fetching image {image} (once)")
        _must("pull", "--quiet", image, seconds=PULL_SECONDS)

    def launch(self, home: Home, *, record: Record, sizes: Sizes) -> None:
        """Start the container without waiting for the server to be ready."""
        home.store.mkdir(mode=0o700, exist_ok=True)
        write_secret(_environment(home), variables(home, record, sizes, user=_user()))
        _must(*_compose(home), "up", "--detach", "--force-recreate", seconds=PULL_SECONDS)

    def pid(self, home: Home) -> int | None:
        """Return None, because the Docker engine owns the process."""
        return None

    def running(self, home: Home) -> bool:
        """Return whether the data directory's container is running."""
        try:
            done = _docker("inspect", "--format", "{{.State.Running}}", container(home), seconds=ASK_SECONDS)
        except GraphError:  # no engine, no container
            return False
        return done.returncode == 0 and done.stdout.strip() == "true"

    def stop(self, home: Home) -> bool:
        """Stop and remove the container, keep the store, and return whether it was running."""
        ran = self.running(home)
        if _environment(home).exists():
            _must(*_compose(home), "down", "--timeout", "30", seconds=STOP_SECONDS)
        return ran

    def last_words(self, home: Home) -> str:
        """Return the log line that best explains why the server ended."""
        done = _docker("logs", "--tail", "200", container(home), seconds=ASK_SECONDS)
        return meaningful((done.stdout + done.stderr).splitlines())

    def log(self, home: Home) -> str:
        """Return the command that shows the log."""
        return f"`docker logs {container(home)}`"


def container(home: Home) -> str:
    """Return the name of the data directory's container."""
    return f"hgmem-{hashlib.sha256(str(home.path).encode()).hexdigest()[:12]}"


def variables(home: Home, record: Record, sizes: Sizes, *, user: str) -> str:
    """Return the content of the environment file for `docker/compose.yaml`."""
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
    # Compose expands $names unless they are in single quotes.
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def _user() -> str:
    # The directory's owner should own the store. A rootless engine maps root to that user and other uids to nobody,
    # so the image must start as root there. It then sets the permissions itself.
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
        raise GraphError(f"Docker could not start Neo4j: {why}; fix that, or set NEO4J_URI to a running server")


def _docker(*arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    # The environment is inherited, because DOCKER_HOST and similar variables locate the engine.
    command = [shutil.which("docker") or "docker", *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphError(f"Docker does not respond: {error}; start its engine", retryable=True) from error
