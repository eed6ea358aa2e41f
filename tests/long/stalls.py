"""A watchdog for long scripts: ends the process with the stacks of all threads if a thread stalls.

    with Watchdog(120.0, own=own) as watchdog:
        watchdog.begin("asking")
        ...
        watchdog.end()

Each thread reports the work that it begins; work that exceeds the limit is a stall. Then the stacks of this process and
of the server go to standard error, with the server's open transactions, and the exit code is 70.
"""

import faulthandler
import os
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Self

from dumping import driver
from servers import OwnServer

STALLED = 70  # the exit code
LOOK = 1.0  # seconds between two checks
ASKED = 20.0  # seconds for the server's report
LAST = 120.0  # seconds after which a process ends even without its dump
TRANSACTIONS = """
SHOW TRANSACTIONS YIELD transactionId, status, elapsedTime, metaData, currentQueryStatus, activeLockCount
RETURN transactionId, status, toString(elapsedTime) AS elapsed, metaData, currentQueryStatus, activeLockCount
"""


class Watchdog:
    """Ends the process if a thread stalls for longer than `limit` seconds."""

    def __init__(self, limit: float, *, own: OwnServer) -> None:
        self.limit = limit
        self._own = own
        self._begun: dict[int, tuple[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(ASKED)

    def begin(self, what: str) -> None:
        """Report the work that this thread begins."""
        self._begun[threading.get_ident()] = what, time.monotonic()

    def end(self) -> None:
        """Report that this thread's work is done."""
        self._begun.pop(threading.get_ident(), None)

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            before = time.monotonic() - self.limit
            if stalled := [what for what, began in list(self._begun.values()) if began < before]:
                self._dump(stalled)

    def _dump(self, stalled: list[str]) -> None:
        # If even the dump stalls, a C thread that needs no Python lock ends the process.
        faulthandler.dump_traceback_later(LAST, exit=True)
        print(f"STALLED for {self.limit:g} s: {', '.join(sorted(stalled))}", flush=True)
        print(f"the server's data stay in {self._own.server.data}", flush=True)
        faulthandler.dump_traceback(all_threads=True)
        for told in (self._transactions, self._server_threads):
            try:
                print(told(), file=sys.stderr, flush=True)
            except Exception as error:
                print(f"the server says nothing: {error!r}", file=sys.stderr, flush=True)
        try:
            self._own.stop()
        finally:
            os._exit(STALLED)

    def _transactions(self) -> str:
        """Return a line for each open transaction of the server."""
        found: list[str] = []

        def ask() -> None:
            with driver(self._own.settings) as opened:
                found.extend(str(record.data()) for record in opened.execute_query(TRANSACTIONS).records)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(ASKED)
        return "\n".join(found) if found else f"no list of transactions within {ASKED:g} s"

    def _server_threads(self) -> str:
        """Return the stacks of the server's threads, if a JDK tool is available."""
        if self._own.server.pid is None:
            return "the server's stacks: `docker exec … jstack 1`"
        tool = ["jstack", "-l", str(self._own.server.pid)]
        return subprocess.run(tool, capture_output=True, text=True, timeout=ASKED, check=False).stdout
