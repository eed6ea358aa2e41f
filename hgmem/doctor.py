"""What `hgmem doctor` looks at: one line each, with the remedy where something is missing.

What lies on this machine is looked at here; what needs a graph, a model or an embedder goes through `Probes`.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hgmem.errors import HGMemError, UsageError
from hgmem.local import docker, jars, java
from hgmem.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at; what is not `required` may be missing, as something else stands in for it."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True

    @property
    def failed(self) -> bool:
        """Whether this keeps hgmem from working."""
        return self.required and not self.ok

    @property
    def line(self) -> str:
        """The check as a person reads it."""
        mark = "ok" if self.ok else "missing" if self.required else "-"
        remedy = f": {self.remedy}" if self.remedy and not self.ok else ""
        return f"{mark:<8}{self.name:<10}{self.detail}{remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """How to ask for what others know; each raises `HGMemError` where there is no answer."""

    server: Callable[[], tuple[str, str]]
    """Returns version and edition of the server."""
    schema: Callable[[], Sequence[str]]
    """Returns the names of indexes and constraints that are missing or differ."""
    model: Callable[[], str]
    """Returns what the language model is, in a few words."""
    embedder: Callable[[], str]
    """Returns what the embedder is, in a few words."""


def examine(settings: Settings, *, uri: str | None, probes: Probes) -> tuple[Check, ...]:
    """Return all checks; `uri` is the server that would be used, None where there is none yet."""
    server = check_server(uri, probes.server)
    return (
        check_python(),
        *check_machine(settings, needed=uri is None),
        server,
        check_schema(probes.schema, reachable=server.ok),
        check_answer("model", probes.model),
        check_answer("embedder", probes.embedder),
    )


def check_python() -> Check:
    """Whether this Python is new enough."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return Check(name="python", ok=ok, detail=version, remedy="install Python 3.11 or newer")


def check_machine(settings: Settings, *, needed: bool) -> tuple[Check, ...]:
    """Whether a server can be started here: by Docker, or by a Java with jars that Maven fetches.

    Nothing of it is required unless `needed`; then Java and Maven are, where Docker can't do without them.
    """
    by_docker = check_docker()
    alone = needed and not by_docker.ok
    return (check_java(settings, required=alone), check_maven(settings, required=alone), by_docker)


def check_java(settings: Settings, *, required: bool) -> Check:
    """Whether there is a Java for the server."""
    try:
        found = java.find(settings)
    except UsageError:
        newest = max((runtime.version for runtime in java.runtimes(settings)), default=None)
        detail = "none found" if newest is None else f"{newest}, too old for the server ({java.OLDEST} or newer)"
        return Check(name="java", ok=False, detail=detail, remedy=java.REMEDY, required=required)
    return Check(name="java", ok=True, detail=f"{found.version} in {found.home}", required=required)


def check_maven(settings: Settings, *, required: bool) -> Check:
    """Whether Neo4j's jars are here, or Maven to fetch them."""
    program, lib = jars.maven(), jars.cached(settings)
    detail = str(program) if program else "not installed"
    if lib:
        detail += f", jars of Neo4j {jars.VERSION} in {lib}"
    ok = bool(program or lib)
    return Check(name="maven", ok=ok, detail=detail, remedy=jars.REMEDY, required=required)


def check_docker() -> Check:
    """Whether a Docker engine answers that can start the server."""
    version = docker.engine()
    if version is None:
        return _optional_docker("no engine answers", "start its engine, or go without it")
    if not docker.has_compose():
        return _optional_docker(f"engine {version} without `docker compose`", "install its compose plugin")
    return Check(name="docker", ok=True, detail=f"engine {version}", required=False)


def _optional_docker(detail: str, remedy: str) -> Check:
    return Check(name="docker", ok=False, detail=detail, remedy=remedy, required=False)


def check_server(uri: str | None, probe: Callable[[], tuple[str, str]]) -> Check:
    """Whether the server answers and is new enough, as the probe says."""
    if uri is None:
        return Check(name="server", ok=False, detail="none", remedy="`hgmem up` starts one, or set NEO4J_URI")
    try:
        version, edition = probe()
    except HGMemError as error:
        return Check(name="server", ok=False, detail=str(error))
    return Check(name="server", ok=True, detail=f"{uri}, Neo4j {version} {edition}".rstrip())


def check_schema(probe: Callable[[], Sequence[str]], *, reachable: bool) -> Check:
    """Whether all indexes and constraints are there; unknown, and no fault of its own, without a server."""
    if not reachable:
        return Check(name="schema", ok=False, detail="unknown without a server", required=False)
    try:
        lacking = probe()
    except HGMemError as error:
        return Check(name="schema", ok=False, detail=str(error))
    if not lacking:
        return Check(name="schema", ok=True, detail="complete")
    names = ", ".join(lacking)
    remedy = "the next `hgmem index` creates what is missing; drop first what differs"
    return Check(name="schema", ok=False, detail=f"missing or different: {names}", remedy=remedy)


def check_answer(name: str, probe: Callable[[], str]) -> Check:
    """Whether something that only its adapter knows is usable."""
    try:
        return Check(name=name, ok=True, detail=probe())
    except HGMemError as error:
        return Check(name=name, ok=False, detail=str(error))
