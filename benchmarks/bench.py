"""hgmem beside its peers, in one run on one machine: `make bench` in minutes, `make bench-full` in hours.

Prints a table, and leaves JSON, Markdown and plots in `.hgmem/bench/results/`.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asking import Instant, beside, growing, questions
from comparing import SEED, Compared
from environments import Child, Unsupported, python
from making import QUESTIONS, made
from measures import machine, on_disk, resident
from report import written
from workloads import OWN_SERVER, PLANS, Plan

from hgmem import HGMem
from hgmem.lightrag import read
from hgmem.local import Server, down, up
from hgmem.settings import load

HOME = Path(__file__).resolve().parents[1]
LIGHTRAG = HOME.parent / "shared" / "data" / "gods_of_mars"
BENCH = HOME / ".hgmem" / "bench"
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W8")


def main() -> None:
    """Run what is asked for, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="every peer and every size; hours")
    parser.add_argument("--lightrag", type=Path, default=LIGHTRAG, help="a LightRAG directory: the graph of the run")
    parser.add_argument("--only", nargs="*", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--systems", nargs="*", help="these alone, of those that the plan has")
    parser.add_argument("--heap", default="2g", help="of each server")
    parser.add_argument("--pagecache", default="2g", help="of each server")
    parser.add_argument("--out", type=Path, default=BENCH / "results")
    options = parser.parse_args()
    try:
        read(options.lightrag)
    except Exception as error:
        sys.exit(f"{error}\ngive a LightRAG working directory, such as that of a novel, by --lightrag")
    plan = PLANS["full" if options.full else "bench"]
    random.seed(SEED)
    found = run(options, plan)
    print(written(found, options.out))


def run(options: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    """Return everything that was measured, with what it was measured on."""
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    found: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    folder = made(options.lightrag, BENCH / "graphs")
    say("the graph and its vectors are there")
    names = [name for name in plan.systems if not options.systems or name in options.systems]
    pythons = {name: python(name) for name in names}
    say("the environments are there")
    with ExitStack() as stack:
        server, data = stack.enter_context(running(options))
        found["server"] = {"heap": options.heap, "pagecache": options.pagecache}
        children = {name: stack.enter_context(Child(name, python=pythons[name])) for name in names}
        found["versions"] = {}
        for name, child in children.items():
            own = stack.enter_context(running(options))[0] if name in OWN_SERVER else server
            versions = child.ask("open", **place(own, name))
            found["versions"][name] = versions.reason if isinstance(versions, Unsupported) else versions
        compared = Compared(children=children, folder=folder, plan=plan, say=say)
        shared(options, compared, found, server, data)
        with HGMem.open("asked", embedder=Instant(), **access(server)) as client:
            alone(options, client, plan, found, say)
        found["memory"] = {name: child.ask("memory") for name, child in children.items()}
        found["memory"]["server"] = resident(server.pid or 0)
        found["lacking"] = compared.lacking
    found["seconds"] = round(time.perf_counter() - began)
    return found


def shared(options: argparse.Namespace, compared: Compared, found: dict[str, Any], server: Server, data: Path) -> None:
    """Run the workloads in which systems take turns."""
    found["W1"] = compared.writes()  # whatever is asked for needs the graph
    compared.say("W1: a graph is written")
    if "W2" in options.only:
        found["W2"] = compared.retrievals()
        compared.say("W2: steps are retrieved")
    if "W4" in options.only:
        found["W4"] = compared.throughput()
        compared.say("W4: steps a second are counted")
    if "W5" in options.only:

        def sizes() -> dict[str, float]:
            return {"server_megabytes": resident(server.pid or 0), "disk_megabytes": on_disk([data]) / 2**20}

        found["W5"] = compared.growth(sizes)


def alone(options: argparse.Namespace, client: HGMem, plan: Plan, found: dict[str, Any], say: Any) -> None:
    """Run the workloads of the product alone."""
    asked = [line for line in QUESTIONS.read_text(encoding="utf-8").splitlines() if line.strip()]
    if {"W3", "W8"} & set(options.only):
        client.import_lightrag(options.lightrag)
    if "W3" in options.only:
        found["W3"] = questions(client, asked[:8], rounds=2)
        say("W3: whole questions are asked")
    if "W8" in options.only:
        found["W8"] = {
            **growing(client, asked[:8], plan.points),
            **beside(client, asked[:6], plan.stored, rounds=2),
        }
        say("W8: memories are large and many")


@contextmanager
def running(options: argparse.Namespace) -> Iterator[tuple[Server, Path]]:
    """Run a server of its own, and yield it with the folder of its data; both go."""
    with TemporaryDirectory(prefix="hgmem-bench.") as folder:
        data = Path(folder) / "neo4j"
        settings = load(data=data)
        server = up(settings, heap=options.heap, pagecache=options.pagecache)
        try:
            yield server, data
        finally:
            down(settings)


def access(server: Server) -> dict[str, Any]:
    """Return how a client reaches the server."""
    return {"uri": server.uri, "username": server.username, "password": server.password}


def place(server: Server, name: str) -> Mapping[str, str]:
    """Return how a system reaches the server, and where it may write."""
    password = server.password.get_secret_value()
    return {"uri": server.uri, "username": server.username, "password": password, "folder": name}


if __name__ == "__main__":
    main()
