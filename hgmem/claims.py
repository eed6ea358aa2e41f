"""Claims: a run that holds a memory or a corpus says every few seconds that it is alive."""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hgmem.errors import ConflictError, HGMemError


@contextmanager
def renewing(renew: Callable[[], None], *, every: float) -> Iterator[None]:
    """Call `renew` every so many seconds while the block runs; stop at a claim that is lost.

    A renewal that fails for another reason is tried again at the next beat: the block's own writes check the claim
    and say what is wrong.
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
        thread.join(timeout=1)  # a daemon: one that waits for a server that is gone is left to itself
