"""A cache on disk: one SQLite file that threads and processes share.

If the file can't be opened, read or written, nothing is stored, and one warning says so.
"""

import sqlite3
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hgmem.errors import CacheWarning
from hgmem.values.sharing import Shared

_BUSY = 10.0  # seconds to wait for another process's lock


class CacheFile(Shared):
    """The file at `path`, whose only table the statement `create` makes. `kept` is what it holds, for the warning.

    The first use creates the file and its folder.
    """

    def __init__(self, path: Path | str, *, create: str, kept: str) -> None:
        self.path = Path(path)
        self._create = create
        self._kept = kept
        self._connection: sqlite3.Connection | None = None
        self._warned = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def run(self, statement: str, values: Sequence[Any] = (), *, many: bool = False) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, none if it fails. With `many`, run it once for each of `values`."""
        try:
            with self._lock:
                return self._patiently(statement, values, many=many)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            if not self._warned:
                self._warned = True
                message = f"{self._kept} are not cached: cannot use {str(self.path)!r} ({error})"
                warnings.warn(message, CacheWarning, stacklevel=5)
            # Retried at the next call: a full disk or a long lock may be temporary.
            return []

    def _patiently(self, statement: str, values: Sequence[Any], *, many: bool) -> list[tuple[Any, ...]]:
        """Run a statement as one transaction, and retry while other processes lock the file.

        SQLite's own busy timeout does not cover deadlocks, as when two processes open a new file at once and both
        switch it to the write-ahead log.
        """
        end = time.monotonic() + _BUSY
        while True:
            try:
                opened = self._opened()
                if not many:
                    return opened.execute(statement, values).fetchall()
                opened.execute("BEGIN IMMEDIATE")
                try:
                    opened.executemany(statement, values)
                finally:
                    opened.execute("COMMIT")
                return []
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Autocommit: each statement is a transaction.
            opened = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            try:
                opened.execute("PRAGMA journal_mode = WAL")
                opened.execute("PRAGMA synchronous = NORMAL")
                opened.execute(self._create)
            except sqlite3.Error:
                opened.close()
                raise
            self._connection = opened
        return self._connection


class Store(CacheFile):
    """Texts by key in the file at `path`."""

    def __init__(self, path: Path | str) -> None:
        create = "CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
        super().__init__(path, create=create, kept="responses")

    def get(self, key: str) -> str | None:
        """Return the text of a key, or None."""
        rows = self.run("SELECT text FROM texts WHERE key = ?", [key])
        return str(rows[0][0]) if rows else None

    def put(self, key: str, text: str) -> None:
        """Store a text, replacing the key's former one."""
        self.run("INSERT OR REPLACE INTO texts VALUES (?, ?)", [key, text])
