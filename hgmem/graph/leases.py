"""Keep a lease alive: a run that holds a memory or a corpus renews its heartbeat every few seconds."""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hgmem.errors import ConflictError, HGMemError
from hgmem.graph.database import Database, Once
from hgmem.graph.values import Runner


@contextmanager
def renewing(database: Database, renew: Callable[[Runner], None], *, every: float) -> Iterator[None]:
    """Call `renew` every `every` seconds while the block runs, until the lease is lost.

    After another error it is called again at the next heartbeat, and not before: an attempt repeated after the block
    would hold a lease for a run that is over. The block's own writes check the lease and raise.
    """
    stopped, once = threading.Event(), Once(database)

    def beat() -> None:
        while not stopped.wait(every):
            try:
                renew(once)
            except ConflictError:
                return
            except HGMemError:
                continue

    thread = threading.Thread(target=contextvars.copy_context().run, args=(beat,), name="hgmem-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=1)  # a daemon thread: it may still be waiting for an unreachable server
