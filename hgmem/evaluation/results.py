"""Results of runs: a JSON line for each question, written at once and read back after any interruption."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from hgmem.errors import DocumentError, UsageError
from hgmem.text.atomic_files import replacing

Row: TypeAlias = dict[str, Any]
Group = TypeVar("Group")

RESULTS = "results.jsonl"
EARLIER = "earlier.jsonl"  # rows of plans that the folder was used with before
NEEDED: Mapping[str, type] = dict.fromkeys(("key", "data", "question", "label"), str)
_MARKS = re.compile(r"[ \t]*\[\d+\]|\*\*|^#+ ", re.MULTILINE)  # tell who wrote an answer: citations, headings
_OF_SYSTEMS = ("system", "recipe", "settings")
_OF_QUESTIONS = ("kind", "asked", "reference", "evidence")


@dataclass(slots=True)
class Results:
    """The rows in a folder that a plan wants, by key, and the file that new ones are appended to.

    `labels` are the labels that the plan gives to the rows, by key: those wanted, and no others.
    """

    folder: Path
    labels: Mapping[str, str]
    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, labels: Mapping[str, str]) -> "Results":
        """Return what the folder holds of the labelled keys, without writing anything."""
        found = cls(folder, labels)
        found.rows = found._wanted(_stored(folder))
        return found

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for new rows.

        Rows that the plan does not want move to a second file, and come back when a plan wants them again. Raises
        `UsageError` while another run writes to the folder.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot create {str(self.folder)!r}: {error.strerror or error}: change output") from error
        with _alone(self.folder):
            stored = _stored(self.folder)
            self.rows = self._wanted(stored)
            self._move(stored)
            yield

    def _wanted(self, stored: Mapping[str, Row]) -> dict[str, Row]:
        """Return the rows that the plan wants, each with its label of today."""
        return {key: {**row, "label": self.labels[key]} for key, row in stored.items() if key in self.labels}

    def _move(self, stored: Mapping[str, Row]) -> None:
        """Write both files anew. After a kill at any moment, each row is in one of them at least."""
        rest = [row for key, row in stored.items() if key not in self.labels]
        earlier = rest or (self.folder / EARLIER).exists()
        if earlier:
            _write(self.folder / EARLIER, stored.values())
        _write(self.folder / RESULTS, self.rows.values())
        if earlier:
            _write(self.folder / EARLIER, rest)

    def add(self, row: Row) -> None:
        """Write a row. It is in the file when this returns."""
        append_row(self.folder / RESULTS, row)
        self.rows[row["key"]] = row


def append_row(file: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a file, on a line of its own after one that a kill cut short. It is there when this returns."""
    with file.open("a+b") as opened:
        torn = False
        if opened.seek(0, os.SEEK_END):
            opened.seek(-1, os.SEEK_END)
            torn = opened.read(1) != b"\n"
        opened.write(("\n" if torn else "").encode() + f"{json.dumps(row, ensure_ascii=False)}\n".encode())
        opened.flush()
        os.fsync(opened.fileno())


def load(paths: Sequence[Path]) -> list[Row]:
    """Return the rows of result files or folders, the last one for each key.

    Raises `UsageError` for a path without results, and for results that differ in more than question and seed under
    one label.
    """
    found: dict[str, Row] = {}
    for path in paths:
        file = path / RESULTS if path.is_dir() else path
        if not file.exists():
            raise UsageError(f"no results at {str(file)!r}: run `hgmem eval run PLAN` first, or name another file")
        found |= {row["key"]: row for row in read_rows(file)}
    if not found:
        raise UsageError(f"no results in {', '.join(repr(str(path)) for path in paths)}: run `hgmem eval run PLAN`")
    _check_alike(found.values())
    return list(found.values())


def blind_answer(row: Row) -> str:
    """Return the answer of a row without marks that tell who wrote it."""
    return _MARKS.sub("", row.get("answer") or "").strip()


def grouped(rows: Iterable[Row], by: Callable[[Row], Group]) -> dict[Group, list[Row]]:
    """Return the rows by what `by` says of each, in their order."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    return groups


def _check_alike(rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UsageError` if rows of one label differ in what they were made with, or those of one question in it."""
    known: dict[tuple[str, ...], str] = {}
    for row in rows:
        for what, name, value in _shared(row):
            before = known.setdefault((what, name), value)
            if before != value:
                raise UsageError(
                    f"results of {what} differ in {name} ({_short(before)} and {_short(value)}): report each folder "
                    "alone, or run each plan again with labels and names of data of its own"
                )


def _shared(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what rows have in common: whose results they are, the name of the field, and its value as text."""
    label, question = f"{row['label']!r} on {row['data']!r}", f"question {row['question']!r} of {row['data']!r}"
    yield from ((label, name, _text(row[name])) for name in _OF_SYSTEMS if name in row)
    yield from ((label, name, value) for name, value in row.get("made_with", {}).items())
    yield from ((question, name, _text(row[name])) for name in _OF_QUESTIONS if name in row)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _stored(folder: Path) -> dict[str, Row]:
    """Return all rows of a folder by key, the latest of each. Those of the main file win."""
    files = [folder / name for name in (EARLIER, RESULTS)]
    return {row["key"]: row for file in files if file.exists() for row in read_rows(file)}


def read_rows(file: Path, needed: Mapping[str, type] = NEEDED) -> list[Row]:
    """Return the rows of a file, which have the needed fields. A last line that a kill cut short is left out.

    Raises `DocumentError` with the line that is no such row.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise DocumentError(f"cannot read {str(file)!r}: {error.strerror or error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            if number == len(lines):  # a line that ends was written whole
                break
            raise DocumentError(f"{str(file)!r}, line {number}: not JSON ({error}): remove the line") from error
        if line.strip():
            if not isinstance(row, dict) or not all(isinstance(row.get(name), kind) for name, kind in needed.items()):
                raise DocumentError(f"{str(file)!r}, line {number}: it needs {', '.join(needed)}: remove the line")
            rows.append(row)
    return rows


def _write(file: Path, rows: Iterable[Row]) -> None:
    with replacing(file, force=True) as written:
        written.writelines(f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in rows)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder for this process. The system gives it back when the process ends, however it ends."""
    with (folder / ".lock").open("w") as opened:
        try:
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows: two runs at once are the user's to avoid
            pass
        except OSError as error:
            raise UsageError(f"another run writes to {str(folder)!r}: wait for it, or change output") from error
        yield
