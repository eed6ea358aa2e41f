"""Kills the indexer, and the server under it, at random moments: the graph must end as if nothing had happened.

    python tests/long/kills.py [--kills 5] [--server-kills 1] [--seed N]

An undisturbed run on a server of its own shows the graph that is wanted, and how long a run takes. Then run after run
is killed at a moment drawn from that time, until one ends by itself; its graph is compared with the wanted one uid for
uid and property for property, but times and attempts. Corpus names go into uids, so each round takes the same name.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hgmem import HGMem, Settings
from hgmem.local import Server, down, find, up
from hgmem.local.docker import container
from hgmem.local.state import Home
from hgmem.resources import resource
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from dumping import Dump, check, driver, dump

Kind: TypeAlias = Literal["indexer", "server", "both"]

FOREIGN = ("NEO4J_", "HGMEM_", "OPENAI_", "AZURE_", "ANTHROPIC_")
CORPUS = "kills"
SECONDS = 300.0  # for a run that nobody kills
SHOWN = 40  # lines of a difference
WIDTH = 160
STATES = """
MATCH (c:Chunk {corpus: $corpus}) RETURN c.status AS status, count(*) AS number ORDER BY status
"""


class FailedError(Exception):
    """What did not go as it must."""


@contextmanager
def own_server() -> Iterator[Server]:
    """A server on a data directory that goes with it; nothing of the caller's environment and files is used."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or the server would stay behind
    with tempfile.TemporaryDirectory(prefix="hgmem-long.") as directory, chdir(directory):
        settings = load(data=Path(directory) / "home")
        try:
            yield up(settings, heap="512m", pagecache="128m")
        finally:
            down(settings)


def reaching(server: Server) -> Settings:
    """Return settings that lead to the server, with the deterministic embedder."""
    return load(
        neo4j_uri=server.uri,
        neo4j_username=server.username,
        neo4j_password=server.password,
        data=server.data,
        embedding_model=DeterministicEmbedder.name,
    )


@dataclass
class House:
    """The server, which changes with every restart, and runs of the indexer on it."""

    server: Server

    @property
    def settings(self) -> Settings:
        """Settings that lead to the server that runs now."""
        return reaching(self.server)

    def start(self) -> "subprocess.Popen[str]":
        """Start the indexer, which finds the server as a user's would."""
        return subprocess.Popen(
            [sys.executable, "-m", "hgmem", "index", str(resource("examples", "affair")), "--corpus", CORPUS],
            env={
                **os.environ,
                "HGMEM_DATA": str(self.server.data),
                "HGMEM_EMBEDDING_MODEL": DeterministicEmbedder.name,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def undisturbed(self) -> float:
        """Return the seconds of a run that nobody kills."""
        began = time.monotonic()
        must_succeed(self.start())
        return time.monotonic() - began

    def kill_server(self) -> None:
        """End the server at once."""
        if self.server.pid is None:
            name = container(Home.at(self.server.data))
            subprocess.run(["docker", "kill", name], check=True, capture_output=True)
        else:
            os.kill(self.server.pid, signal.SIGKILL)
        while find(self.settings):
            time.sleep(0.02)

    def restart(self) -> None:
        """Bring a killed server back, on its data and with its password."""
        self.server = up(load(data=self.server.data), heap="512m", pagecache="128m")

    def empty(self) -> None:
        """Delete the corpus, so that the next run starts anew."""
        with HGMem.open(CORPUS, **self.settings.model_dump(exclude_none=True)) as client:
            if CORPUS in {row["corpus"] for row in client.corpora()}:
                client.delete()

    def states(self) -> str:
        """Return how many chunks are in which state."""
        with driver(self.settings) as opened:
            rows = opened.execute_query(STATES, corpus=CORPUS).records
        return ", ".join(f"{row['number']} {row['status']}" for row in rows) or "none written"


def must_succeed(process: "subprocess.Popen[str]") -> None:
    """Wait for a run that has no reason to fail."""
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output = f"{process.communicate()[0]}\nit did not end within {SECONDS:.0f} s"
    if process.returncode:
        raise FailedError(f"index ended with exit code {process.returncode}:\n{output}")


def ended_well(process: "subprocess.Popen[str]") -> bool:
    """Whether a run whose server was killed got over it; if not, it must say so as an error of ours does."""
    output, _ = process.communicate(timeout=SECONDS)
    if process.returncode and ("Traceback" in output or not output.strip()):
        raise FailedError(f"a killed server must give one clear line, index said:\n{output}")
    return not process.returncode


def kill(house: House, process: "subprocess.Popen[str]", kind: Kind) -> bool:
    """Kill what is to be killed and, if that was the server, bring it back; whether the run ended by itself."""
    if kind != "server":
        process.kill()
    if kind != "indexer":
        house.kill_server()
        house.restart()
    if kind == "server":
        return ended_well(process)
    process.communicate()
    return False


def disturbed(house: House, kills: list[Kind], *, seconds: float, draw: random.Random) -> int:
    """Return how many kills a corpus took until a run ended by itself; they are taken from the end of `kills`."""
    taken = 0
    while kills:
        process, moment = house.start(), draw.uniform(0, seconds)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            kind = kills.pop()
            over = kill(house, process, kind)
            taken += 1
            what = "indexer and server" if kind == "both" else kind
            went = "; the run got over it" if over else ""
            print(f"  killed the {what} after {moment:.2f} s of {seconds:.2f}; chunks: {house.states()}{went}")
            if over:
                return taken
        else:
            must_succeed(process)
            return taken
    must_succeed(house.start())
    return taken


def differences(wanted: Dump, found: Dump) -> list[str]:
    """Return a line for each thing that only one of the graphs has (`-` wanted, `+` found), or that differs (`~`)."""
    lines = []
    for uid in sorted(wanted.nodes.keys() | found.nodes.keys()):
        before, after = wanted.nodes.get(uid), found.nodes.get(uid)
        if before and after:
            lines += _changes(uid, before, after)
        elif one := before or after:
            lines.append(f"{'-' if before else '+'} {'/'.join(one[0])} {uid} {_short(_named(one[1]))}")
    for sign, counted in (
        ("-", wanted.relationships - found.relationships),
        ("+", found.relationships - wanted.relationships),
    ):
        lines += [f"{sign} {times} x {_short(one)}" for one, times in sorted(counted.items())]
    return lines


def _changes(uid: str, before: tuple[list[str], dict[str, Any]], after: tuple[list[str], dict[str, Any]]) -> list[str]:
    (labels, old), (others, new) = before, after
    lines = [f"~ {uid} labels: {labels} became {others}"] if labels != others else []
    return lines + [
        f"~ {'/'.join(labels)} {uid} {name}: {_short(old.get(name))} became {_short(new.get(name))}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _named(properties: dict[str, Any]) -> object:
    return next((properties[name] for name in ("name", "title", "text") if name in properties), "")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def must_equal(wanted: Dump, found: Dump, *, after: str) -> None:
    """Raise with the differences, if there are any."""
    lines = differences(wanted, found)
    if lines:
        more = [f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise FailedError("\n".join([f"the graph after {after} is another:", *lines[:SHOWN], *more]))


def compare(house: House, kills: list[Kind], draw: random.Random) -> None:
    """Run undisturbed, then kill until `kills` is used up; raises on the first difference."""
    house.undisturbed()  # the first run on a server that just started is slow
    wanted = dump(house.settings, CORPUS)
    check(wanted)
    house.empty()
    seconds = house.undisturbed()
    must_equal(wanted, dump(house.settings, CORPUS), after="a second undisturbed run")
    print(f"undisturbed: {seconds:.2f} s, {len(wanted.nodes)} nodes, {wanted.relationships.total()} relationships")
    rounds, number = 0, len(kills)
    while kills:
        house.empty()
        taken = disturbed(house, kills, seconds=seconds, draw=draw)
        must_equal(wanted, dump(house.settings, CORPUS), after=f"{taken} kills")
        rounds += 1
        print(f"round {rounds}: {taken} kills, then a run to the end: the same graph")
    print(f"{number} kills in {rounds} rounds: each time the graph of an undisturbed run")


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Kill the indexer and the server; the graph must stay the same.")
    parser.add_argument("--kills", type=int, default=5, help="of the indexer")
    parser.add_argument("--server-kills", type=int, default=1, help="every second takes the indexer along")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments and their order")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    on_server: list[Kind] = ["both" if number % 2 else "server" for number in range(given.server_kills)]
    on_indexer: list[Kind] = ["indexer"] * given.kills
    kills = on_indexer + on_server
    draw.shuffle(kills)
    print(f"seed {given.seed}")
    try:
        with own_server() as server:
            compare(House(server), kills, draw)
    except FailedError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
