"""Grow one corpus by near-copies of a graph, by `add_graph`, up to 500 of them: hgmem alone, kept on disk.

The corpus is made once and reused until the code that writes changes. If interrupted, run the command again to resume.
On the way and at the end, a step, a whole question and the disk are measured, beside one graph on the same server.
"""

import argparse
import hashlib
import json
import os
import random
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphs
import neo4j
from asking import Instant, questions, settled
from comparing import THREE, Placed, bought, means
from kept import BENCH, home
from making import made, own
from measures import mean, on_disk, resident, told
from running import access, place
from serve import Serving, memory
from systems.product import System

from hgmem import HGMem
from hgmem.local import down, up
from hgmem.settings import Settings, load

LARGE, SMALL = "large", "small"
EVERY = 25  # graphs per reported line
EARLY = 100  # graphs; later ones are compared with the cheapest of these
SIZES = (1, 10, 50)  # measured on the way
WARM = 2  # rounds
DATABASE = Path("data/databases/neo4j")
STORES = (  # the first pattern that matches a file's name
    ("node store", r"neostore\.nodestore"),
    ("relationship store", r"neostore\.relationship(store|groupstore)"),
    ("property store: vectors and lists", r"neostore\.propertystore\.db\.arrays"),
    ("property store: texts", r"neostore\.propertystore\.db\.strings"),
    ("property store: the rest", r"neostore\.propertystore"),
    ("other", ""),
)
INDEXES = "SHOW INDEXES YIELD id, name, type, labelsOrTypes RETURN id, name, type, labelsOrTypes"
KINDS = {"Entity": "entities", "Chunk": "chunks", "RELATES": "relations"}  # what a vector index holds


def main() -> None:
    """Print one JSON object; progress goes to standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lightrag", type=Path, help="use this LightRAG graph. Default: this repository's documents")
    parser.add_argument("--graph", type=Path, help="use a graph folder of an earlier run, unchanged")
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--steps", type=int, default=20, help="measure N different steps")
    parser.add_argument("--rounds", type=int, default=6, help="run each step N times")
    parser.add_argument("--warm", type=float, default=30, help="warm up with whole questions for N seconds")
    parser.add_argument("--heap", default="4g")
    parser.add_argument("--pagecache", default="4g")
    parser.add_argument("--again", action="store_true", help="reuse the corpus even if the code that writes changed")
    parser.add_argument("--held", type=Path, default=BENCH, help="keep the corpus in this folder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise the server keeps running
    folder = options.graph or (made(options.lightrag, BENCH / "graphs") if options.lightrag else own(BENCH / "graphs"))
    content = hashlib.sha256((folder / "graph.json").read_bytes()).hexdigest()
    kept = home("large", content, again=options.again, held=options.held)
    settings = load(data=kept / "neo4j")
    say(f"kept in {kept}")
    try:
        print(json.dumps(Growing(folder, kept, settings, options).found(), indent=2))
    finally:
        down(settings)


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Growing:
    """The corpus in its server, and the recorded measurements: one line per graph, and one per size."""

    folder: Path
    kept: Path
    settings: Settings
    options: argparse.Namespace

    def found(self) -> dict[str, Any]:
        """Return all measurements, of this run and of the runs that it resumes."""
        graph = graphs.load(self.folder)
        self._counts = {kind: len(getattr(graph, kind)) for kind in graphs.KINDS}
        before = list(self._lines())
        written = len({row["graph"] for row in before if "graph" in row})
        self._begun = {row["begun"] for row in before if "begun" in row}
        self._connect(written)
        self._small(graph)
        self._start = memory()["megabytes"]
        missing = {*SIZES} - {row["size"] for row in before if "size" in row}
        for copy in range(written, self.options.graphs):
            if copy in missing:
                self._measured(copy)
            self._write(copy)
        there = max(written, self.options.graphs)
        self._measured(there)
        self._system.close()
        return self._told(there)

    def _connect(self, written: int) -> None:
        """Start the server, which already contains `written` graphs, and connect to it."""
        sizes = {"heap": self.options.heap, "pagecache": self.options.pagecache}
        self.server = up(self.settings, **sizes, report=say)
        self._system = System()
        self._system.open(place(self.server, LARGE))
        self._serving = Serving(self._system)
        self._system.hold(LARGE, written * self._counts["entities"])
        self._system.hold(SMALL, self._counts["entities"])

    def _disk(self, written: int) -> dict[str, int]:
        """Stop the server, so that it writes everything to its stores; return its disk use and start it again."""
        names = indexes(self._system.driver)
        self._system.close()
        down(self.settings)
        found = stored(self.kept / "neo4j", names)
        self._connect(written)
        return found

    def _small(self, graph: graphs.Graph) -> None:
        """Write one graph with memories into its own corpus; record the disk use before there is more."""
        if not any(row.get("size") == 0 for row in self._lines()):
            self._system.write(graph, SMALL)()
            with HGMem.open(SMALL, embedder=Instant(), **access(self.server)) as client:
                settled(client)
            self._note({"size": 0, "disk": self._disk(0)})

    def _write(self, copy: int) -> None:
        graph = graphs.load(self.folder, copy)
        self._note({"begun": copy})
        written = self._system.write(graph, LARGE)
        began = time.perf_counter()
        written()
        row = {
            "graph": copy,
            "seconds": round(time.perf_counter() - began, 3),
            "client_megabytes": round(memory()["megabytes"] - self._start, 1),
            "server_megabytes": resident(self.server.pid or 0),
            "disk_megabytes": round(on_disk([self.kept]) / 2**20, 1),
        }
        if copy in self._begun:  # a killed run had written part or all of it
            row["again"] = True
        self._note(row)
        say(f"{copy + 1} graphs, {(copy + 1) * self._counts['entities']:,} entities: {row['seconds']} s for this one")

    def _measured(self, graphs_there: int) -> None:
        """Measure the disk, a step and a whole question, in both corpora, and record the results."""
        copies = {LARGE: tuple(range(graphs_there)), SMALL: (0,)}
        row: dict[str, Any] = {"size": graphs_there, "disk": self._disk(graphs_there)}
        before = next(one["disk"] for one in self._lines() if one.get("size") == 0)
        grown = {name: size - before.get(name, 0) for name, size in row["disk"].items()}
        row["bytes"] = each(grown, {kind: count * graphs_there for kind, count in self._counts.items()})
        say(f"{graphs_there} graphs: the disk is measured")
        row["step"] = self._steps(copies)
        say(f"{graphs_there} graphs: a step takes {row['step'][LARGE]['median_ms']} ms")
        asked = [query.text for query in graphs.queries(self.folder)][:8]
        for corpus in copies:
            with HGMem.open(corpus, embedder=Instant(), **access(self.server)) as client:
                found = questions(client, asked, rounds=2, warm=self.options.warm, recipes=("default",))
            row.setdefault("question", {})[corpus] = found["default"]
        say(f"{graphs_there} graphs: a question takes {row['question'][LARGE]['median_ms']} ms")
        self._note(row)

    def _steps(self, copies: dict[str, Sequence[int]]) -> dict[str, Any]:
        """Return the times of steps in both corpora, which take turns, and their recall of the nearest items."""
        placed = {
            corpus: Placed(title=THREE.name, case=THREE, corpus=corpus, copies=tuple(of), steps=self.options.steps)
            for corpus, of in copies.items()
        }
        for corpus, one in placed.items():
            self._serving.ready(folder=str(self.folder), as_=corpus, **one.asked)
        seconds: dict[str, list[float]] = {corpus: [] for corpus in copies}
        turns = [(corpus, at) for corpus in copies for at in range(self.options.steps)]
        last = {}
        for turn in range(WARM + self.options.rounds):
            for corpus, at in random.sample(turns, len(turns)):
                last[corpus, at] = done = self._serving.retrieve(as_=corpus, at=at)
                if turn >= WARM:
                    seconds[corpus].append(done["seconds"])
        nearest = {corpus: one.wanted(self.folder) for corpus, one in placed.items()}
        found = {
            corpus: [bought(last[corpus, at], nearest[corpus][at]) for at in range(self.options.steps)]
            for corpus in copies
        }
        return {corpus: told(of) | {"found": means(found)[corpus]} for corpus, of in seconds.items()}

    def _told(self, there: int) -> dict[str, Any]:
        rows = [row for row in self._lines() if "graph" in row]
        along = [
            {**some[-1], "graphs": some[-1]["graph"] + 1, "seconds_a_graph": _seconds(some)}
            for some in (rows[begin : begin + EVERY] for begin in range(0, len(rows), EVERY))
        ]
        sizes = {row["size"]: row for row in self._lines() if "size" in row and 0 < row["size"] <= there}
        return {
            "graph": self._counts,
            "graphs": there,
            "server": {"heap": self.options.heap, "pagecache": self.options.pagecache},
            "client_megabytes_at_most": max(row["client_megabytes"] for row in rows),
            "along": [
                {name: value for name, value in row.items() if name not in ("graph", "seconds", "again")}
                for row in along
            ],
            "growth_of_writing": growth(rows),
            "sizes": [sizes[size] for size in sorted(sizes)],
        }

    def _lines(self) -> Iterator[dict[str, Any]]:
        path = self.kept / "progress.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            with suppress(ValueError):  # an incomplete line of a killed run
                yield json.loads(line)

    def _note(self, row: dict[str, Any]) -> None:
        with (self.kept / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def growth(rows: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Return the seconds per graph of the last 25 against the lowest 25 of the first 100; None if there are fewer.

    The lowest are used because the first graphs are written while the server warms up, and would hide growth.
    """
    fresh = [row["seconds"] for row in rows if "again" not in row]
    if len(fresh) < EARLY + EVERY:
        return None
    lowest, last = mean(sorted(fresh[:EARLY])[:EVERY]), mean(fresh[-EVERY:])
    return {"lowest_of_the_first": lowest, "last": last, "ratio": round(last / lowest, 3)}


def _seconds(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the mean of the graphs that were written only once; None if there are none."""
    fresh = [row["seconds"] for row in rows if "again" not in row]
    return mean(fresh) if fresh else None


def indexes(driver: neo4j.Driver) -> dict[str, str]:
    """Return a description of each index by its folder."""
    return {str(row["id"]): _index(row) for row in driver.execute_query(INDEXES).records}


def stored(data: Path, names: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes of each store, index and log in the data folder of a stopped server."""
    found: dict[str, int] = defaultdict(int)
    for path in (data / DATABASE).rglob("*"):
        if path.is_file():
            found[_store(path.relative_to(data / DATABASE), names)] += path.stat().st_size
    log = data / "data" / "transactions" / "neo4j"
    found["transaction log"] = sum(path.stat().st_size for path in log.rglob("*") if path.is_file())
    return dict(sorted(found.items()))


def each(found: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, float]:
    """Return the bytes of each store per entity, and those of a vector index per indexed item."""
    every = {name: size for name, size in found.items() if name != "transaction log"}
    told = {f"{name}, an entity": round(size / counts["entities"], 1) for name, size in every.items()}
    for kind, count in counts.items():
        if size := every.get(f"vector index: {kind}"):
            told[f"vector index: {kind}, one of them"] = round(size / count, 1)
    told["all but the log, an entity"] = round(sum(every.values()) / counts["entities"], 1)
    return told


def _index(row: Mapping[str, Any]) -> str:
    kind = str(row["type"]).lower()
    if kind == "vector":
        of = next(iter(row["labelsOrTypes"] or ()), row["name"])
        return f"vector index: {KINDS.get(of, of)}"
    return {"fulltext": "full-text indexes", "lookup": "token lookup"}.get(kind, "range indexes")


def _store(path: Path, names: Mapping[str, str]) -> str:
    if path.parts[:2] == ("schema", "index"):
        own = path.parts[3] if len(path.parts) > 3 else ""
        return names.get(own, "indexes of constraints, and others")
    return next(name for name, pattern in STORES if re.match(pattern, path.name))


if __name__ == "__main__":
    main()
