"""A real Neo4j on this machine, started, found and stopped.

A server belongs to a data directory: a Neo4j home with our `server.json` (address, password, kind) in it.
Docker runs it where an engine answers, else a Java with the jars that Maven fetched; the store is the same.
It listens on the loopback alone, outlives whoever started it, and is told from strangers by its command line.
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
    """Return the server of the data directory once it answers a query; started unless it runs already.

    `heap` and `pagecache` (`2g`, `512m`) count for a server that starts now. `report` gets a line at each
    step that takes a while. Two callers at the same time get the same server.
    """
    wanted = sizes(heap=heap, pagecache=pagecache)
    home = _home(settings, data)
    home.claim()
    with home.locked(report):
        record = home.load()
        if record and (engine := engine_of(record.kind, settings)).running(home):
            if heap or pagecache:
                report("the server runs already: heap and pagecache wait for its next start")
            return ready(engine, home, record=record)
        return start(settings, home=home, sizes=wanted, report=report)


def find(settings: Settings, *, data: Path | None = None) -> Server | None:
    """Return the server that `up` started on the data directory if it lives, else None; asks it nothing."""
    home = _home(settings, data)
    record = home.load()
    if record is None:
        return None
    engine = engine_of(record.kind, settings)
    return record.server(home, pid=engine.pid(home)) if engine.running(home) else None


def down(settings: Settings, *, data: Path | None = None) -> bool:
    """Stop the server of the data directory, which keeps its data; whether one was running."""
    home = _home(settings, data)
    if not home.lock.exists():  # nothing was ever started there, and nothing of ours should be left there
        return False
    with home.locked(_quiet):
        record = home.load()
        return (engine_of(record.kind, settings) if record else JavaEngine(settings)).stop(home)


def _home(settings: Settings, data: Path | None) -> Home:
    return Home.at(data or settings.data)
