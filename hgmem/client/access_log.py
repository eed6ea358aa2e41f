"""The log of accesses: lines of JSON in a file for each day, without texts and tokens."""

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from platformdirs import user_log_path

from hgmem.errors import UsageError

FOLDER = user_log_path("hgmem") / "access"


def json_line(**fields: object) -> str:
    """Return fields as a line of JSON, with the time."""
    return json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}, ensure_ascii=False)


class AccessLog:
    """Who accessed what and when: a line of JSON a request, in `folder`, a file a day, kept for `days` days.

    Several processes of a machine may share the folder. Raises `UsageError` if it can't be written.
    """

    def __init__(self, folder: Path, *, days: int) -> None:
        self._folder = folder
        self._days = days
        self._lock = threading.Lock()
        self._day = ""
        self._file = -1
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.write(event="start", process=os.getpid())
        except OSError as error:
            said = f"cannot write the access log in {str(folder)!r} ({error.strerror}): pass another --access-log"
            raise UsageError(said) from None

    def write(self, **fields: object) -> None:
        """Append a line. One write of a file opened for appending is never mixed with another process's."""
        with self._lock:
            self._turn()
            os.write(self._file, f"{json_line(**fields)}\n".encode("utf-8", "replace"))

    def _turn(self) -> None:
        """Open the day's file if that is another one, and delete those that are too old."""
        day = time.strftime("%Y-%m-%d", time.gmtime())
        if day == self._day:
            return
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self._folder / f"{day}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._day = day
        oldest = (datetime.now(UTC) - timedelta(days=self._days)).strftime("%Y-%m-%d")
        for path in self._folder.glob("????-??-??.jsonl"):
            if path.stem < oldest:
                path.unlink(missing_ok=True)  # another process may be first
