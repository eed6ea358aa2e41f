"""Start, find and stop a Neo4j server on this machine.

A server belongs to a data directory: a Neo4j home that also holds `server.json` (address, password, kind). Docker runs
it if an engine answers; otherwise Java runs it, with jars that Maven downloads. Both use the same store. The server
listens on the loopback interface only, keeps running after the starting process ends, and is recognized by its command
line.
"""

from collections.abc import Callable
from pathlib import Path

from hgmem.local.machine import sizes
from hgmem.local.process import JavaEngine
from hgmem.local.starting import engine_of, ready, start
from hgmem.local.state import Home, Server
from hgmem.settings import Settings

__all__ = ["Server", "down", "find", "up"]


def _quiet(line: str) -> None:
    pass


def up(
    settings: Settings,
    *,
    heap: str | None = None,
    pagecache: str | None = None,
    data: Path | None = None,
    report: Callable[[str], None] = _quiet,
) -> Server:
    """Return the data directory's server once it answers a query, starting it if necessary.

    `heap` and `pagecache` (such as `2g` or `512m`) apply only if the server is started now. `report` receives a line
    for each slow step. Concurrent callers get the same server.
    """
    wanted = sizes(heap=heap, pagecache=pagecache)
    home = _home(settings, data)
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
    home = _home(settings, data)
    record = home.load()
    if record is None:
        return None
    engine = engine_of(record.kind, settings)
    return record.server(home, pid=engine.pid(home)) if engine.running(home) else None


def down(settings: Settings, *, data: Path | None = None) -> bool:
    """Stop the data directory's server, and return whether one was running.

    Its data stays.
    """
    home = _home(settings, data)
    if not home.lock.exists():  # no server was ever started there, so don't create files
        return False
    with home.locked(_quiet):
        record = home.load()
        return (engine_of(record.kind, settings) if record else JavaEngine(settings)).stop(home)


def _home(settings: Settings, data: Path | None) -> Home:
    return Home.at(data or settings.data)
