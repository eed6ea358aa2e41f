"""Keep a lease alive: a run that holds a memory or a corpus renews its heartbeat every few seconds."""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hgmem.errors import ConflictError, HGMemError


@contextmanager
def renewing(renew: Callable[[], None], *, every: float) -> Iterator[None]:
    """Call `renew` every `every` seconds while the block runs, until the lease is lost.

    Other errors are retried at the next heartbeat: the block's own writes check the lease and raise.
    """
    stopped = threading.Event()

    def beat() -> None:
        while not stopped.wait(every):
            try:
                renew()
            except ConflictError:
                return
            except HGMemError:
                continue

    thread = threading.Thread(target=contextvars.copy_context().run, args=(beat,), name="hgmem-claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=1)  # a daemon thread: it may still be waiting for an unreachable server
