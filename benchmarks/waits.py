"""Measure what one person waits for: an answer in a shell, the next question of a session, a folder of documents.

`--python` names the interpreters of other checkouts whose stored data is the same. They take turns with this one on one
server, all without kept vectors, and this one also with the vectors of the same question kept. Prints seconds and their
ratios to the first interpreter, as JSON. The model is the extractive one and the embedder the real one.
"""

import argparse
import itertools
import json
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import read_questions

from hgmem.local import down, up
from hgmem.settings import load

HERE = Path(__file__).resolve().parent
CORPUS = "novel"
PARTS = ("session", "shell", "folder")
# A session: it answers the questions of its standard input, a line each, with the seconds that they took.
SESSION = """
import json, sys, time
from hgmem import HGMem
with HGMem.open("novel") as client:
    client.ask("Who is here?", steps=1)
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        answer = client.ask(line.strip(), steps=3)
        whole = time.perf_counter() - began
        parts = {kind: sum(names.values()) for kind, names in answer.usage.seconds.items()}
        print(json.dumps({"seconds": whole, **parts}), flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """An interpreter, with or without kept vectors."""

    name: str
    python: str
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> float:
        """Run a command of hgmem; return its seconds."""
        began = time.perf_counter()
        subprocess.run(
            [self.python, "-P", "-m", "hgmem", *arguments], env=self.environment, check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - began

    @contextmanager
    def session(self) -> Iterator["Session"]:
        """Yield a process that answers questions."""
        with subprocess.Popen(
            [self.python, "-P", "-c", SESSION],  # not the hgmem of the working directory
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            session = Session(process)
            session.read()
            yield session
            process.communicate()


@dataclass(frozen=True)
class Session:
    """A process that answers questions."""

    process: "subprocess.Popen[str]"

    def read(self) -> str:
        """Return the next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self, question: str) -> dict[str, float]:
        """Return the seconds of a question by part."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        found: dict[str, float] = json.loads(self.read())
        return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True)
    parser.add_argument("--python", action="append", default=[], help="interpreter of another checkout")
    parser.add_argument("--data", type=Path, help="keep the server's data here, and import into it once")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--questions", type=int, default=100, help="ask the first N in a session")
    parser.add_argument("--folder", type=Path, default=HERE.parent / "examples" / "affair")
    options = parser.parse_args()
    questions = read_questions()
    with tempfile.TemporaryDirectory() as folder:
        settings = load(data=options.data or Path(folder) / "neo4j")
        up(settings)
        try:
            found = list(contenders([*options.python, sys.executable], Path(folder), settings.data))
            found[-1].command("import", "lightrag", str(options.lightrag), "--corpus", CORPUS)
            for each in found:  # plans of statements, kept vectors of the shell's question, compiled modules
                each.command("ask", questions[0], "--corpus", CORPUS)
            print(json.dumps(figures(found, questions, options), indent=2))
        finally:
            down(settings)


def contenders(pythons: Sequence[str], folder: Path, data: Path) -> Iterator[Contender]:
    """Yield each interpreter without kept vectors, the last one then with them."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("HGMEM_", "NEO4J_"))}
    usual.pop("PYTHONDONTWRITEBYTECODE", None)  # a person's modules are compiled once
    for at, python in enumerate(pythons):
        for kept in ("0", "100000") if at == len(pythons) - 1 else ("0",):
            own = {"HGMEM_DATA": str(data.resolve()), "HGMEM_CACHE": str(folder / f"cache-{at}")}
            name = f"{at}{' kept' if kept != '0' else ''}"
            yield Contender(name=name, python=python, environment={**usual, **own, "HGMEM_CACHED_VECTORS": kept})


def figures(found: Sequence[Contender], questions: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the parts that are wanted."""
    run = secrets.token_hex(3)
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "session": lambda: asked(found, questions[: options.questions]),
        "shell": lambda: commands(found, lambda _: ("ask", questions[0], "--corpus", CORPUS), options.rounds),
        "folder": lambda: commands(
            found, lambda turn: ("index", str(options.folder), "--corpus", f"folder-{run}-{turn}"), options.rounds
        ),
    }
    return {"interpreters": [each.python for each in found], **{part: measures[part]() for part in options.only}}


def commands(found: Sequence[Contender], of: Callable[[int], Sequence[str]], rounds: int) -> dict[str, Any]:
    """Return the figures of a command, which all contenders run in turns."""
    took: dict[str, list[float]] = {each.name: [] for each in found}
    turns = itertools.count()
    for _ in range(rounds):
        for each in random.sample(found, len(found)):
            took[each.name].append(each.command(*of(next(turns))))
    return compared(took)


def asked(found: Sequence[Contender], questions: Sequence[str]) -> dict[str, Any]:
    """Return the figures of all questions in sessions. What is kept was kept by a session before."""
    with found[-1].session() as session:
        for question in questions:
            session.ask(question)
    took: dict[str, list[dict[str, float]]] = {each.name: [] for each in found}
    with ExitStack() as stack:
        sessions = {each.name: stack.enter_context(each.session()) for each in found}
        for question in questions:
            for name in random.sample(list(sessions), len(sessions)):
                took[name].append(sessions[name].ask(question))
    parts = {
        name: {part: round(statistics.median(one.get(part, 0.0) for one in each), 3) for part in each[0]}
        for name, each in took.items()
    }
    return {**compared({name: [one["seconds"] for one in each] for name, each in took.items()}), "parts": parts}


def compared(seconds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return medians, least ones, and medians of the ratios to the first in the same turn."""
    first = next(iter(seconds.values()))
    return {
        "median": {name: round(statistics.median(each), 3) for name, each in seconds.items()},
        "least": {name: round(min(each), 3) for name, each in seconds.items()},
        "ratio": {
            name: round(statistics.median(one / base for one, base in zip(each, first, strict=True)), 2)
            for name, each in seconds.items()
        },
    }


if __name__ == "__main__":
    main()
