"""Serve one system in its own process and environment: read commands as lines of JSON, time them, reply in JSON.

`python serve.py NAME` imports `systems/NAME.py`, whose `System` has the methods of `Benched`. Runs in the environment
of every peer: uses only the standard library and numpy.
"""

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TextIO

from graphs import Found, Graph, Step, UnsupportedError, load, steps


class Benched(Protocol):
    """The interface of a system. Its methods raise `UnsupportedError` for unsupported commands."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect to `place` (uri, username, password, folder for files); return versions by package."""

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that adds a graph to a corpus and returns when all of it can be found.

        The preparation is not timed: the graph in the form in which a user of the system has it, and the vectors of
        its texts for a system that embeds them itself.
        """

    def step(self, step: Step) -> Callable[[], Found]:
        """Return a function that runs the step's retrieval. The preparation, such as storing a memory, is not timed.

        The function may be called any number of times, by several threads at once.
        """

    def close(self) -> None:
        """Release all resources."""


class Serving:
    """The commands."""

    def __init__(self, system: Benched) -> None:
        self._system = system
        self._ready: dict[str, list[Callable[[], Found]]] = {}

    def open(self, **place: str) -> dict[str, str]:
        """Connect; return versions."""
        return self._system.open(place)

    def write(self, *, folder: str, corpus: str, copies: list[int]) -> dict[str, Any]:
        """Write the copies one after the other; return the seconds of each."""
        seconds = []
        for copy in copies:
            written = self._system.write(load(Path(folder), copy), corpus)
            began = time.perf_counter()
            written()
            seconds.append(time.perf_counter() - began)
        return {"seconds": seconds, **memory()}

    def ready(self, *, folder: str, as_: str = "", **asked: Any) -> int:
        """Prepare the steps of `graphs.steps` with these arguments under a name; return their number."""
        self._ready[as_] = [self._system.step(step) for step in steps(Path(folder), **asked)]
        return len(self._ready[as_])

    def retrieve(self, *, at: int, as_: str = "") -> dict[str, Any]:
        """Run a prepared step; return its seconds and results."""
        began = time.perf_counter()
        found = self._ready[as_][at]()
        return {"seconds": time.perf_counter() - began, **asdict(found)}

    def throughput(self, *, threads: int, seconds: float, as_: str = "") -> float:
        """Return the steps per second of all threads, which take the prepared steps in turn, each at least one."""
        ready = self._ready[as_]
        end = time.perf_counter() + seconds

        def work(thread: int) -> int:
            done = 0
            while not done or time.perf_counter() < end:
                ready[(thread + done) % len(ready)]()
                done += 1
            return done

        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(work, range(threads)))
        return done / (time.perf_counter() - began)

    def memory(self) -> dict[str, float]:
        """Return the current and peak megabytes of this process."""
        return memory()

    def close(self) -> None:
        """Release all resources."""
        self._system.close()


def memory() -> dict[str, float]:
    """Return the current and peak megabytes of this process.

    Linux reports both for a program; the peak of `getrusage` starts at the memory of the parent process.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"megabytes": peak, "megabytes_at_most": peak}
    told = dict(line.split(":", 1) for line in status.read_text().splitlines())
    now, peak = (int(told[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return {"megabytes": now, "megabytes_at_most": peak}


def serve(serving: Any, lines: TextIO, replies: TextIO) -> None:
    """Answer commands until there are no more."""
    for line in lines:
        command = json.loads(line)
        try:
            reply: dict[str, Any] = {"is": getattr(serving, command.pop("do"))(**command)}
        except UnsupportedError as lacking:
            reply = {"unsupported": str(lacking)}
        except Exception as error:  # sent to the caller, which decides
            reply = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main() -> None:
    """Serve the system that the command line names; all other output goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    system = importlib.import_module(f"systems.{sys.argv[1]}").System()
    serve(Serving(system), sys.stdin, replies)


if __name__ == "__main__":
    main()
