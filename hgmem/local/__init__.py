"""Start, find and stop a Neo4j server on this machine.

A server belongs to a data directory: a Neo4j home that also holds `server.json` (address, password, kind). Docker runs
it if an engine answers; otherwise Java runs it, with jars that Maven downloads. Both use the same store. The server
listens on the loopback interface only, keeps running after the starting process ends, and is recognized by its command
line.
"""

import secrets
import time
from pathlib import Path
from typing import TypeAlias

from hgmem.errors import GraphError, UsageError
from hgmem.graph.server import ping
from hgmem.local import docker, java, machine
from hgmem.local.docker import DockerEngine
from hgmem.local.machine import Sizes, sizes
from hgmem.local.process import JavaEngine
from hgmem.local.state import USERNAME, EngineKind, Home, Record, Report, Server
from hgmem.settings import Settings

__all__ = ["Server", "down", "find", "up"]

BOLT, HTTP = 7687, 7474
START_SECONDS = 180.0
REFUSED_SECONDS = 90.0
REFUSED_PAUSE = 4.0
PING_SECONDS = 2.0
ATTEMPTS = 3
PORT_TAKEN = ("already in use", "already allocated", "BindException")

Engine: TypeAlias = DockerEngine | JavaEngine
"""A way to run a server, with all its state in the home."""


def up(
    settings: Settings,
    *,
    heap: str | None = None,
    pagecache: str | None = None,
    data: Path | None = None,
    report: Report = lambda _: None,
) -> Server:
    """Return the data directory's server once it answers a query, starting it if necessary.

    `heap` and `pagecache` (such as `2g` or `512m`) apply only if the server is started now. `report` receives a line
    for each slow step. Concurrent callers get the same server.
    """
    wanted = sizes(heap=heap, pagecache=pagecache)
    home = Home.at(data or settings.data)
    home.claim()
    with home.locked(report):
        record = home.load()
        if record and (engine := engine_of(record.kind, settings)).running(home):
            if heap or pagecache:
                report("the server is already running: heap and pagecache take effect at its next start")
            return ready(engine, home, record=record)
        return start(settings, home=home, sizes=wanted, report=report)


def find(settings: Settings, *, data: Path | None = None) -> Server | None:
    """Return the running server that `up` started on the data directory, else None.

    The server is not queried.
    """
    home = Home.at(data or settings.data)
    record = home.load()
    if record is None:
        return None
    engine = engine_of(record.kind, settings)
    return record.server(home, pid=engine.pid(home)) if engine.running(home) else None


def down(settings: Settings, *, data: Path | None = None) -> bool:
    """Stop the data directory's server, and return whether one was running.

    Its data stays.
    """
    home = Home.at(data or settings.data)
    if not home.lock.exists():  # no server was ever started there, so don't create files
        return False
    with home.locked(lambda _: None):
        record = home.load()
        return (engine_of(record.kind, settings) if record else JavaEngine(settings)).stop(home)


def engine_of(kind: EngineKind, settings: Settings) -> Engine:
    """Return the engine that runs servers of this kind."""
    return DockerEngine() if kind == "docker" else JavaEngine(settings)


def choose(settings: Settings, *, kept: Record | None, report: Report) -> Engine:
    """Return the engine for a new start: Docker if available, unless the store was created without it."""
    if (kept is None or kept.kind == "docker") and docker.engine():
        if docker.has_compose():
            return DockerEngine()
        report("Docker is running but `docker compose` is not installed: continuing without Docker")
    return JavaEngine(settings)


def start(settings: Settings, *, home: Home, sizes: Sizes, report: Report) -> Server:
    """Start a server on a home without a running one, and return it once it answers.

    On failure, no server is left running.
    """
    kept = home.load()
    if kept is None and home.has_databases():
        name = str(home.record)
        raise UsageError(
            f"{name!r}, which holds the database password, is missing or damaged: choose another data directory"
        )
    home.check_unused()
    engine = choose(settings, kept=kept, report=report)
    engine.prepare(report)
    for _ in range(ATTEMPTS):
        kept = renewed(kept, engine.kind)
        home.save(kept)
        report(f"starting Neo4j {kept.version} on {kept.uri}, data in {home.path}")
        try:
            return _launched(engine, home, record=kept, sizes=sizes)
        except GraphError as error:  # another process took the port after it was checked
            if not any(sign in str(error) for sign in PORT_TAKEN):
                raise
            taken = error
    raise taken


def renewed(kept: Record | None, kind: EngineKind) -> Record:
    """Return the record for the next start, with the same password and, if free, the same ports."""
    bolt = machine.port(kept.bolt if kept else None, BOLT)
    return Record(
        # A leading letter: a password that starts with a dash would be parsed as an option.
        password=kept.password if kept else f"n{secrets.token_urlsafe(24)}",
        bolt=bolt,
        http=machine.port(kept.http if kept else None, HTTP, taken=bolt),
        kind=kind,
        version=java.VERSION,
    )


def _launched(engine: Engine, home: Home, *, record: Record, sizes: Sizes) -> Server:
    try:
        engine.launch(home, record=record, sizes=sizes)
        return ready(engine, home, record=record)
    except BaseException:  # including Ctrl-C: a failed `up` must not leave a server running
        engine.stop(home)
        raise


def ready(engine: Engine, home: Home, *, record: Record) -> Server:
    """Return the server once it answers a query.

    Raises `GraphError` if it ends first, or does not answer in time.
    """
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < START_SECONDS:
        if not engine.running(home):
            why, log = engine.last_words(home), engine.log(home)
            raise GraphError(f"Neo4j stopped while starting: {why}; see its log {log}")
        if _answers(record, patient=waited < REFUSED_SECONDS):
            return record.server(home, pid=engine.pid(home))
        time.sleep(0.1)
    log = engine.log(home)
    raise GraphError(f"Neo4j is running but does not respond: run `hgmem down`, then `hgmem up`; see its log {log}")


def _answers(record: Record, *, patient: bool) -> bool:
    try:
        return bool(ping(record.uri, username=USERNAME, password=record.password, timeout=PING_SECONDS))
    except GraphError:
        # Another server may have just taken the port, and ours will then end by itself. Until then, ask rarely,
        # because three wrong passwords within five seconds lock the other server's user.
        if not patient:
            raise
        time.sleep(REFUSED_PAUSE)
        return False
