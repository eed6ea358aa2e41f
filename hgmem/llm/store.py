"""Texts kept between runs, by key: one SQLite file that any number of threads and processes share.

It saves calls, it decides nothing: where the file can't be opened, read or written, there is no store, and a warning
says so once.
"""

import sqlite3
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from hgmem.sharing import Shared

_BUSY = 10.0  # seconds that another process may hold the file
_CREATE = "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
_Rows = list[tuple[str, ...]]


class Store(Shared):
    """Texts by key in the file at `path`, which is created, with its folder, at the first use."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._warned = False
        self._lock = threading.Lock()

    def get(self, key: str) -> str | None:
        """Return the text of a key, None where there is none."""
        rows = self._run("SELECT text FROM texts WHERE key = ?", [key])
        return rows[0][0] if rows else None

    def put(self, key: str, text: str) -> None:
        """Keep a text, in place of the key's former one."""
        self._run("INSERT OR REPLACE INTO texts VALUES (?, ?)", [key, text])

    def drop(self, prefix: str) -> None:
        """Forget the texts of all keys that begin so."""
        self._run("DELETE FROM texts WHERE substr(key, 1, length(?1)) = ?1", [prefix])

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self, statement: str, values: Sequence[str] = ()) -> _Rows:
        try:
            with self._lock:
                return self._patiently(statement, values)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            if not self._warned:
                self._warned = True
                warnings.warn(f"replies are not kept: {str(self.path)!r} can't be used ({error})", stacklevel=4)
            # Not remembered: a full disk or a process that holds the file too long may be over by the next call.
            return []

    def _patiently(self, statement: str, values: Sequence[str]) -> _Rows:
        """Run a statement, again while other processes hold the file; each statement is one transaction.

        SQLite's own waiting leaves out the moments in which it sees a deadlock coming, as when two processes open a new
        file at once and both turn it to the write-ahead log.
        """
        end = time.monotonic() + _BUSY
        while True:
            try:
                return self._opened().execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Without transactions of Python's own: each statement is one.
            opened = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            try:
                opened.execute("PRAGMA journal_mode = WAL")
                opened.execute("PRAGMA synchronous = NORMAL")
                opened.execute(_CREATE)
            except sqlite3.Error:
                opened.close()
                raise
            self._connection = opened
        return self._connection
