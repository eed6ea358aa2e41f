"""Logs as lines of JSON: of the process to stderr, and of accesses to a file for each day, without texts and tokens."""

import json
import os
import sys
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path


def say(**fields: object) -> None:
    """Write a line about the process to stderr."""
    print(_line(fields), file=sys.stderr, flush=True)  # noqa: T201


def say_error(error: BaseException) -> None:
    """Write an error that nobody expected, with where it happened."""
    places = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
    say(event="unexpected", error=f"{type(error).__name__}: {error}", places=places[-8:])


def _line(fields: dict[str, object]) -> str:
    return json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}, ensure_ascii=False)


class AccessLog:
    """Who accessed what and when: a line of JSON a request, in `folder`, a file a day, kept for `days` days.

    Several processes of a machine may share the folder.
    """

    def __init__(self, folder: Path, *, days: int) -> None:
        self._folder = folder
        self._days = days
        self._lock = threading.Lock()
        self._day = ""
        self._file = -1
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.write(event="start", process=os.getpid())

    def write(self, **fields: object) -> None:
        """Append a line. One write of a file opened for appending is never mixed with another process's."""
        with self._lock:
            self._turn()
            os.write(self._file, f"{_line(fields)}\n".encode("utf-8", "replace"))

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
