"""Compare hgmem with its peers in one run on one machine: `make bench` takes minutes, `make bench-full` hours.

Prints a table and writes JSON, Markdown and plots to `.hgmem/bench/results/`.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import graphs
from asking import Instant, beside, growing, questions, settled
from comparing import SEED, THREE, Compared, Placed
from environments import OURS, SAME, Child, ChildError, Unsupported, peers, python
from kept import BENCH, ROOT
from making import NOVEL, made, own
from measures import machine, on_disk, resident
from report import saved, written
from running import access, place, running, scripted
from systems.product import given
from workloads import OWN_SERVER, PLANS, Plan

from hgmem import HGMem
from hgmem.corpus.importing import import_graph
from hgmem.errors import HGMemError
from hgmem.local import Server
from hgmem.sources.lightrag import read_lightrag

DATA = ROOT.parent / "shared" / "data"
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W8", "W9", "crowding", "large")


def main() -> None:
    """Run the requested workloads and write the results."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise its servers keep running
    random.seed(SEED)
    try:
        run = Run(options)
        try:
            run.everything()
        finally:  # keep what was measured before an error
            print(written(run.found, options.out))
    except (ChildError, HGMemError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _options() -> argparse.Namespace:
    """Return the options of the command line, after checking them."""
    known = (*OURS, *peers(), *SAME)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", choices=PLANS, default="bench")
    parser.add_argument("--full", action="store_const", const="full", dest="plan", help="all peers and sizes; hours")
    parser.add_argument("--lightrag", type=Path, help="use the graph of this LightRAG directory")
    parser.add_argument("--graph", type=Path, help="use a graph folder of an earlier run, unchanged")
    parser.add_argument("--text", type=Path, help="index this file in W6; the quick run uses its beginning")
    parser.add_argument("--questions", type=Path, default=DATA / "hotpotqa", help="W9's data, as for quality.py")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=WORKLOADS, help="run these workloads only")
    parser.add_argument("--systems", nargs="+", choices=known, help="run these only; ratios need the floor")
    parser.add_argument("--heap", help="heap size of each server")
    parser.add_argument("--pagecache", help="page cache of each server")
    parser.add_argument("--out", type=Path, default=BENCH / "results")
    options = parser.parse_args()
    asked = options.systems or PLANS[options.plan].systems
    for name in [name for name in asked if SAME.get(name, name) not in asked]:
        parser.error(f"{name} reads what {SAME[name]} writes: name that too in --systems")
    if options.text and not options.text.is_file():
        parser.error(f"--text {options.text}: there is no such file")
    try:  # before hours of measuring, not after them
        options.out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=options.out).close()
    except OSError as error:
        parser.error(f"no results can be written to {options.out}: {error.strerror}; give another folder by --out")
    return options


class Run:
    """One run: its inputs and its results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._began = time.perf_counter()
        self._options = options
        self._plan: Plan = replace(PLANS[options.plan], **{
            name: getattr(options, name) for name in ("heap", "pagecache") if getattr(options, name)
        })  # fmt: skip
        self._lightrag = self._given_lightrag()
        self._folder, of = self._graph()
        graph = graphs.load(self._folder)
        counts = {kind: len(getattr(graph, kind)) for kind in graphs.KINDS}
        self._asked = [query.text for query in graphs.queries(self._folder)][: self._plan.asked]
        self.found: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "plan": options.plan,
            "graph": {"of": of, **counts},
            "server": {"heap": self._plan.heap, "pagecache": self._plan.pagecache},
            "versions": {},
            "lacking": {},
        }
        self.say(f"the graph and its vectors are there: {of}, {counts}")
        self._pythons = {name: python(name) for name in options.systems or self._plan.systems}
        self.say("the environments are there")

    def say(self, text: str) -> None:
        """Print the progress of the run."""
        self.found["seconds"] = round(time.perf_counter() - self._began)
        print(f"{self.found['seconds']:6} s  {text}", file=sys.stderr, flush=True)

    def _done(self, text: str) -> None:
        """Save the results so far and print progress, so that a run killed hours later keeps them."""
        saved(self.found, self._options.out)
        self.say(text)

    def everything(self) -> None:
        """Run every requested workload."""
        wanted = set(self._options.only)
        if wanted & {"W1", "W2", "W3", "W4", "W8"}:
            with self._systems() as (compared, server, _):
                self._shared(compared, wanted)
                if wanted & {"W3", "W8"}:
                    self._alone(server, wanted)
                self.found["memory"] = {name: child.ask("memory") for name, child in compared.children.items()}
                self.found["memory"]["server"] = resident(server.pid or 0)
        if "W5" in wanted:
            self._grown()
            if self._plan.corpora:
                self._spread()
        self._scripts(wanted)

    def _shared(self, compared: Compared, wanted: set[str]) -> None:
        if wanted & {"W1", "W2", "W4"}:
            self.found["W1"] = compared.writes()  # the others need the graph
            self._done("W1: a graph is written")
        if "W2" in wanted:
            self.found["W2"] = compared.retrievals()
            self._done("W2: steps are retrieved")
        if "W4" in wanted:
            self.found["W4"] = compared.throughput()
            self._done("W4: steps a second are counted")

    def _alone(self, server: Server, wanted: set[str]) -> None:
        graph, plan = given(graphs.load(self._folder)), self._plan
        with HGMem.open("settled", embedder=Instant(), **access(server)) as client:
            import_graph(client._services(None), graph)
            settled(client)
        with HGMem.open("asked", embedder=Instant(), **access(server)) as client:
            import_graph(client._services(None), graph)
            if "W3" in wanted:
                novel = NOVEL.items() <= self.found["graph"].items()
                self.found["W3"] = questions(client, self._asked, rounds=2, warm=plan.warm, novel=novel)
                self._done("W3: whole questions are asked")
            if "W8" in wanted:
                self.found["W8"] = growing(client, self._asked, plan.points)
        if "W8" in wanted:
            with ExitStack() as stack:
                clients = {}
                for many in plan.stored:
                    client = stack.enter_context(HGMem.open(f"beside-{many}", embedder=Instant(), **access(server)))
                    import_graph(client._services(None), graph)
                    clients[many] = client
                self.found["W8"] |= beside(clients, self._asked[:6], rounds=4)
            self._done("W8: memories are large and many")

    def _grown(self) -> None:
        """W5 and W7: writing, a step and a whole question in one growing corpus, on its own server."""
        rows: list[dict[str, Any]] = []
        before = 0
        with self._systems(size=self._plan.sizes[0]) as (compared, server, data):
            self._warmed(compared, server)
            for size in self._plan.sizes:
                took = compared.grown("grown", range(before, size), until=size)
                before = size
                placed = Placed(
                    title=THREE.name, case=THREE, corpus="grown", copies=tuple(range(size)), steps=self._plan.steps
                )
                rows.append(self._row(size, (compared, server, data), took, [placed]))
                self.found["W5"] = {"grown": rows}
                self._done(f"W5: {size} graphs in one corpus")

    def _spread(self) -> None:
        """W5: the same number of graphs in one corpus each, on its own server; steps in some of them."""
        many = self._plan.corpora
        with self._systems(size=many) as (compared, server, data):
            self._warmed(compared, server)
            took = compared.spread(many)
            placed = [
                Placed(title=THREE.name, case=THREE, corpus=f"spread-{copy}", copies=(copy,), steps=1, copy=copy)
                for copy in sorted(random.sample(range(many), min(many, self._plan.steps)))
            ]
            self.found["W5"]["spread"] = self._row(many, (compared, server, data), took, placed)
        self._done(f"W5: {many} graphs in a corpus each")

    def _warmed(self, compared: Compared, server: Server) -> None:
        """Warm up outside of the figures, and store enough memories that those of the questions change no plan."""
        corpus = compared.warmed()
        if "product" in compared.children and "W3" in self._options.only:
            with HGMem.open(corpus, embedder=Instant(), **access(server)) as client:
                settled(client)

    def _row(
        self, size: int, where: tuple[Compared, Server, Path], took: dict[str, Any], placed: list[Placed]
    ) -> dict[str, Any]:
        compared, server, data = where
        step = compared.measured(placed, compared.reading(took))[THREE.name]
        row = {
            "graphs": size,
            "write": took,
            "step": step,
            "server_megabytes": resident(server.pid or 0),
            "disk_megabytes": on_disk([data]) / 2**20,
        }
        if "product" in took and "W3" in self._options.only:
            with HGMem.open(placed[0].corpus, embedder=Instant(), **access(server)) as client:
                row["question"] = questions(client, self._asked, rounds=2, warm=self._plan.warm, recipes=("default",))[
                    "default"
                ]
        return row

    def _scripts(self, wanted: set[str]) -> None:
        """Run the workloads that have their own scripts; report missing data."""
        plan, options = self._plan, self._options
        text = options.text or next(iter(sorted((DATA / "a_christmas_carol").glob("*.txt"))), ROOT / "ARCHITECTURE.md")
        quick = ("--embedder", "deterministic", "--seconds", "0.1") if options.plan in ("tiny", "peers") else ()
        scripts: dict[str, tuple[Any, ...]] = {
            "W6": ("indexing", "--text", text, "--characters", plan.characters, *quick)
        }
        if options.plan == "full":
            lightrag = ("--lightrag", self._lightrag) if self._lightrag else None
            scripts["crowding"] = ("crowding", *lightrag) if lightrag else ("a LightRAG directory (--lightrag)",)
            there = (options.questions / "hotpotqa_train.json").exists()
            scripts["W9"] = ("quality", "--data", options.questions) if there else ("HotpotQA's files (--questions)",)
            scripts["large"] = ("large", "--graph", self._folder, "--graphs", plan.large)
        for name, (script, *arguments) in scripts.items():
            if name in wanted and arguments:
                self.found[name] = scripted(script, *arguments)
                self._done(f"{name}: {script}.py has run")
            elif name in wanted:
                self.found[name] = {"lacking": f"not run: it wants {script}"}

    def _given_lightrag(self) -> Path | None:
        """Return the LightRAG directory of the run: the given one, else the one beside the repository, else None."""
        known = DATA / "gods_of_mars"
        directory: Path | None = self._options.lightrag or (known if known.is_dir() else None)
        if directory and not self._options.graph:
            try:
                read_lightrag(directory)
            except HGMemError as error:
                sys.exit(f"{error}\ngive a LightRAG working directory, such as that of a novel, by --lightrag")
        return directory

    def _graph(self) -> tuple[Path, str]:
        """Return the folder of the graph's files, and a description of its source."""
        if self._options.graph:
            folder = self._options.graph.resolve()  # systems run in other folders
            if not (folder / "queries.json").exists():
                sys.exit(f"{folder} is no graph that a run made: give a folder of {BENCH / 'graphs'}, or no --graph")
            return folder, str(self._options.graph)
        if self._lightrag:
            return made(self._lightrag, BENCH / "graphs"), f"the LightRAG directory {self._lightrag.name}"
        print("no LightRAG directory is given: the graph is made of this repository's own documents", file=sys.stderr)
        return own(BENCH / "graphs"), "this repository's own documents, by the extractive model"

    @contextmanager
    def _systems(self, *, size: int = 0) -> Iterator[tuple[Compared, Server, Path]]:
        """Yield the running systems that get `size` graphs, on one server.

        Systems that use hgmem's labels have their own server.
        """
        names = [name for name in self._pythons if size <= self._plan.until(SAME.get(name, name))]
        sizes = {"heap": self._plan.heap, "pagecache": self._plan.pagecache}
        with ExitStack() as stack:
            server, data = stack.enter_context(running(**sizes))
            children = {name: stack.enter_context(Child(name, python=self._pythons[name])) for name in names}
            versions = self.found["versions"]
            for name, child in children.items():
                alone = stack.enter_context(running(**sizes))[0] if name in OWN_SERVER else server
                opened = child.ask("open", **place(alone, name))
                versions[name] = opened.reason if isinstance(opened, Unsupported) else opened
            lacking = self.found["lacking"]
            yield Compared(children=children, folder=self._folder, plan=self._plan, lacking=lacking), server, data


if __name__ == "__main__":
    main()
