"""From a data directory to a server that answers."""

import secrets
import time
from typing import Protocol

from hgmem.errors import GraphError, UsageError
from hgmem.graph.ping import ping
from hgmem.local import docker, jars, machine
from hgmem.local.docker import DockerEngine
from hgmem.local.machine import Sizes
from hgmem.local.process import JavaEngine
from hgmem.local.state import USERNAME, Home, Kind, Record, Report, Server
from hgmem.settings import Settings

BOLT, HTTP = 7687, 7474
START_SECONDS = 180.0
REFUSED_SECONDS = 90.0
REFUSED_PAUSE = 4.0
PING_SECONDS = 2.0
ATTEMPTS = 3
PORT_TAKEN = ("already in use", "already allocated", "BindException")


class Engine(Protocol):
    """One way of running a server; everything it must remember lies in the home."""

    @property
    def kind(self) -> Kind:
        """The name of this way in `server.json`."""

    def prepare(self, report: Report) -> None:
        """Get together what a start needs, or raise what is missing."""

    def launch(self, home: Home, *, record: Record, sizes: Sizes) -> None:
        """Start the server, without waiting for it."""

    def pid(self, home: Home) -> int | None:
        """Return the server's process, where it is one of this machine."""

    def running(self, home: Home) -> bool:
        """Whether the server lives."""

    def stop(self, home: Home) -> bool:
        """End the server; whether it ran."""

    def last_words(self, home: Home) -> str:
        """Return the line that says best why the server ended."""

    def log(self, home: Home) -> str:
        """Return where to read on."""


def engine_of(kind: Kind, settings: Settings) -> Engine:
    """Return what runs servers of that kind."""
    return DockerEngine() if kind == "docker" else JavaEngine(settings)


def choose(settings: Settings, *, kept: Record | None, report: Report) -> Engine:
    """Return what will run the server: Docker where it can, but a store begun without it stays without it."""
    if (kept is None or kept.kind == "docker") and docker.engine():
        if docker.has_compose():
            return DockerEngine()
        report("a Docker engine answers, but `docker compose` is not installed: going on without Docker")
    return JavaEngine(settings)


def start(settings: Settings, *, home: Home, sizes: Sizes, report: Report) -> Server:
    """Return a server started on a home that nothing runs on; what fails leaves nothing running."""
    kept = home.load()
    if kept is None and home.has_databases():
        name = str(home.record)
        raise UsageError(f"{name!r}, which holds the store's password, is gone or broken: choose another directory")
    home.check_unused()
    engine = choose(settings, kept=kept, report=report)
    engine.prepare(report)
    for _ in range(ATTEMPTS):
        kept = renewed(kept, engine.kind)
        home.save(kept)
        report(f"starting Neo4j {kept.version} on {kept.uri}, data in {home.path}")
        try:
            return _launched(engine, home, record=kept, sizes=sizes)
        except GraphError as error:  # somebody else took the port between our look and the server's
            if not any(sign in str(error) for sign in PORT_TAKEN):
                raise
            taken = error
    raise taken


def renewed(kept: Record | None, kind: Kind) -> Record:
    """Return the record for the next start: the same password; the same ports as long as they are free."""
    bolt = machine.port(kept.bolt if kept else None, BOLT)
    return Record(
        # A letter first: a password that starts like an option would be read as one.
        password=kept.password if kept else f"n{secrets.token_urlsafe(24)}",
        bolt=bolt,
        http=machine.port(kept.http if kept else None, HTTP, taken=bolt),
        kind=kind,
        version=jars.VERSION,
    )


def _launched(engine: Engine, home: Home, *, record: Record, sizes: Sizes) -> Server:
    try:
        engine.launch(home, record=record, sizes=sizes)
        return ready(engine, home, record=record)
    except BaseException:  # Ctrl-C too: an `up` that did not succeed must not leave half a server behind
        engine.stop(home)
        raise


def ready(engine: Engine, home: Home, *, record: Record) -> Server:
    """Return the server once it answers a query; `GraphError` when it ended first, or says nothing."""
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < START_SECONDS:
        if not engine.running(home):
            why, log = engine.last_words(home), engine.log(home)
            raise GraphError(f"Neo4j ended while starting: {why}; its log is {log}")
        if _answers(record, patient=waited < REFUSED_SECONDS):
            return record.server(home, pid=engine.pid(home))
        time.sleep(0.1)
    log = engine.log(home)
    raise GraphError(f"Neo4j runs but does not answer: `hgmem down`, then `hgmem up`; its log is {log}")


def _answers(record: Record, *, patient: bool) -> bool:
    try:
        return bool(ping(record.uri, username=USERNAME, password=record.password, timeout=PING_SECONDS))
    except GraphError:
        # A refusal may come from a stranger who took our port just now; ours ends by itself then. Until that
        # is out ask seldom, as three wrong passwords in five seconds lock the stranger's user.
        if not patient:
            raise
        time.sleep(REFUSED_PAUSE)
        return False
