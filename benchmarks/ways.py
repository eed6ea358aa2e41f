"""Count the files of `hgmem/` that one `add` and one `ask` go through, and draw the order in which they are entered.

A file counts if the body of one of its functions runs; importing it does not count. The server and the embedder are
those of the settings, and the model is the extractive one. Prints JSON: for each call its number of files, the files of
each room, and the entries. An entry is a call of a function by a function of another file of the same room, so a number
above the number of documents tells that data turns back. To count another checkout, run this file with its interpreter
or with `PYTHONPATH`.
"""

import argparse
import inspect
import json
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hgmem
from hgmem import Document, HGMem

ROOT = Path(hgmem.__file__).resolve().parent
DOCUMENTS = (
    Document(
        id="first", text="Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed the Engine."
    ),
    Document(id="second", text="Charles Babbage lived in London. Ada Lovelace met Charles Babbage at a party."),
)
QUESTION = "Who designed the machine that Ada Lovelace wrote about?"


class Way:
    """The files whose functions were called, in all threads, and the order in which they were entered."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.entries: Counter[str] = Counter()
        self.order: list[str] = []
        self._generators: set[FrameType] = set()
        self._importing = threading.local()
        self._names: dict[CodeType, str | None] = {}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call, unless a module is being imported. Called by the interpreter at every call and return."""
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            depth = getattr(self._importing, "depth", 0)
            self._importing.depth = max(0, depth + (1 if event == "call" else -1))
        elif event == "call" and not getattr(self._importing, "depth", 0) and (name := self._name(code)):
            if code.co_flags & inspect.CO_GENERATOR:
                if frame in self._generators:
                    return  # it goes on, and was entered before
                self._generators.add(frame)
            self.files.add(name)
            before = _caller(frame, self._name)
            if before != name:
                self.order.append(name)
                if before is not None and before.rpartition("/")[0] == name.rpartition("/")[0]:
                    self.entries[name] += 1

    def _name(self, code: CodeType) -> str | None:
        """Return the file of a function's code below `hgmem/`. Bodies of modules and classes are not functions."""
        if code not in self._names:
            path = Path(code.co_filename)
            ours = bool(code.co_flags & inspect.CO_OPTIMIZED) and path.is_relative_to(ROOT)
            self._names[code] = path.relative_to(ROOT).as_posix() if ours else None
        return self._names[code]

    def found(self) -> dict[str, Any]:
        """Return the figures, as JSON writes them."""
        rooms: dict[str, list[str]] = {}
        for name in sorted(self.files):
            rooms.setdefault(name.rpartition("/")[0] or ".", []).append(name.rpartition("/")[2])
        return {
            "files": len(self.files),
            "moves": len(self.order),
            "rooms": dict(sorted(rooms.items())),
            "entries": dict(sorted(self.entries.items())),
        }


def _caller(frame: FrameType, name_of: Callable[[CodeType], str | None]) -> str | None:
    """Return the file of the nearest caller that is a function of ours, None at the end of the stack."""
    above = frame.f_back
    while above is not None:
        if name := name_of(above.f_code):
            return name
        above = above.f_back
    return None


@contextmanager
def noting() -> Iterator[Way]:
    """Note all calls of the block, in this thread and in those that it starts."""
    way = Way()
    threading.setprofile(way.note)
    sys.setprofile(way.note)
    try:
        yield way
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main() -> None:
    """Add two documents to a new corpus, ask one question, and print what they went through."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--order", metavar="ROOM", help="print the order of entries in a room, such as corpus")
    room = options.parse_args().order
    with HGMem.open(f"ways-{secrets.token_hex(4)}", model="extractive") as client:
        try:
            with noting() as added:
                client.add(DOCUMENTS)
            with noting() as asked:
                client.ask(QUESTION, steps=2)
        finally:
            client.delete()
    print(json.dumps({"add": added.found(), "ask": asked.found()}, indent=2))
    if room:
        for call, way in (("add", added), ("ask", asked)):
            print(f"{call}:", *_runs(name for name in way.order if name.startswith(f"{room}/")))


def _runs(names: Iterator[str]) -> list[str]:
    """Return the names in order, each with how often it stands there in a row."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return [name if number == 1 else f"{name}*{number}" for name, number in runs]


if __name__ == "__main__":
    main()
