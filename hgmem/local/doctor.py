"""The checks of `hgmem doctor`, each reported in one line with a remedy.

Checks of this machine are made here. Checks that need a graph, a model or an embedder go through `Probes`.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hgmem.errors import HGMemError, UsageError
from hgmem.local import docker, java
from hgmem.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check, which may fail without harm unless it is `required`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True

    @property
    def failed(self) -> bool:
        """Whether this prevents hgmem from working."""
        return self.required and not self.ok

    @property
    def line(self) -> str:
        """The check as one line of text."""
        mark = "ok" if self.ok else "missing" if self.required else "-"
        remedy = f": {self.remedy}" if self.remedy and not self.ok else ""
        return f"{mark:<8}{self.name:<10}{self.detail}{remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Functions that query other components, and raise `HGMemError` on failure."""

    server: Callable[[], tuple[str, str]]
    """Returns version and edition of the server."""
    schema: Callable[[], Sequence[str]]
    """Returns the names of indexes and constraints that are missing or differ."""
    model: Callable[[], str]
    """Returns a short description of the language model."""
    embedder: Callable[[], str]
    """Returns a short description of the embedder."""
    systems: Callable[[bool], str]
    """Returns the names of the systems, their Cypher checked, and planned if the server answers (the argument)."""


def examine(settings: Settings, *, uri: str | None, probes: Probes) -> tuple[Check, ...]:
    """Return all checks for the server at `uri`, which is None if there is none yet."""
    server = check_server(uri, probes.server)
    return (
        check_python(),
        *check_machine(settings, needed=uri is None),
        server,
        check_schema(probes.schema, reachable=server.ok),
        check_answer("model", probes.model),
        check_answer("embedder", probes.embedder),
        check_answer("systems", lambda: probes.systems(server.ok), required=False),
    )


def check_python() -> Check:
    """Check whether this Python is new enough."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return Check(name="python", ok=ok, detail=version, remedy="install Python 3.11 or newer")


def check_machine(settings: Settings, *, needed: bool) -> tuple[Check, ...]:
    """Check whether this machine can start a server, with Docker or with Java and Maven.

    They are required only if `needed`; Java and Maven then only without Docker.
    """
    by_docker = check_docker()
    alone = needed and not by_docker.ok
    return (check_java(settings, required=alone), check_maven(settings, required=alone), by_docker)


def check_java(settings: Settings, *, required: bool) -> Check:
    """Check whether there is a Java runtime for the server."""
    try:
        found = java.find(settings)
    except UsageError:
        newest = max((runtime.version for runtime in java.runtimes(settings)), default=None)
        detail = "none found" if newest is None else f"{newest}, too old for Neo4j (needs {java.OLDEST} or newer)"
        return Check(name="java", ok=False, detail=detail, remedy=java.JAVA_REMEDY, required=required)
    return Check(name="java", ok=True, detail=f"{found.version} in {found.home}", required=required)


def check_maven(settings: Settings, *, required: bool) -> Check:
    """Check whether Neo4j's jars are cached, or Maven can download them."""
    program, lib = java.maven(), java.cached_jars(settings)
    detail = str(program) if program else "not installed"
    if lib:
        detail += f", jars of Neo4j {java.VERSION} in {lib}"
    ok = bool(program or lib)
    return Check(name="maven", ok=ok, detail=detail, remedy=java.MAVEN_REMEDY, required=required)


def check_docker() -> Check:
    """Check whether a Docker engine can start the server."""
    version = docker.engine()
    if version is None:
        return _optional_docker("no engine responds", "start the Docker engine, or continue without Docker")
    if not docker.has_compose():
        return _optional_docker(f"engine {version} without `docker compose`", "install the Docker Compose plugin")
    return Check(name="docker", ok=True, detail=f"engine {version}", required=False)


def _optional_docker(detail: str, remedy: str) -> Check:
    return Check(name="docker", ok=False, detail=detail, remedy=remedy, required=False)


def check_server(uri: str | None, probe: Callable[[], tuple[str, str]]) -> Check:
    """Check whether the server answers and is new enough, according to the probe."""
    if uri is None:
        return Check(name="server", ok=False, detail="none", remedy="start one with `hgmem up`, or set NEO4J_URI")
    try:
        version, edition = probe()
    except HGMemError as error:
        return Check(name="server", ok=False, detail=str(error))
    return Check(name="server", ok=True, detail=f"{uri}, Neo4j {version} {edition}".rstrip())


def check_schema(probe: Callable[[], Sequence[str]], *, reachable: bool) -> Check:
    """Check whether all indexes and constraints exist, which is unknown without a server."""
    if not reachable:
        return Check(name="schema", ok=False, detail="unknown without a server", required=False)
    try:
        lacking = probe()
    except HGMemError as error:
        return Check(name="schema", ok=False, detail=str(error))
    if not lacking:
        return Check(name="schema", ok=True, detail="complete")
    names = ", ".join(lacking)
    remedy = "run `hgmem index` to create what is missing; first drop what differs"
    return Check(name="schema", ok=False, detail=f"missing or different: {names}", remedy=remedy)


def check_answer(name: str, probe: Callable[[], str], *, required: bool = True) -> Check:
    """Check whether a model, an embedder or the systems are usable."""
    try:
        return Check(name=name, ok=True, detail=probe(), required=required)
    except HGMemError as error:
        return Check(name=name, ok=False, detail=str(error), required=required)
