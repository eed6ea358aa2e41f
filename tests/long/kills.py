"""Kills indexers, and the server under them, at random moments: the graph must end as if nothing had happened.

    python tests/long/kills.py [--kills 5] [--server-kills 1] [--indexers 1] [--embedder real] [--seed N]

An undisturbed run on its own server gives the wanted graph and the time of a run. Then the script kills runs at random
moments within that time, until all end by themselves. It compares the graph with the wanted one by uid and property,
except for times and attempts. Corpus names go into uids, so each round uses the same name. With several indexers of the
same folder at once, the script kills and restarts one of them while the others continue.

`attempts` counts the writes of a chunk's extraction to the database: one, plus one for each indexer that was still
working on the chunk when another had written it.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from differing import differences, shown

from hgmem import HGMem
from hgmem.models.embedders import MINILM
from hgmem.testing import DeterministicEmbedder
from hgmem.text.resources import resource

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from dumping import Dump, check, driver, dump
from servers import OwnServer, alone

Kind: TypeAlias = Literal["indexer", "server", "both"]
Process: TypeAlias = "subprocess.Popen[str]"

CORPUS = "kills"
EMBEDDERS = {"deterministic": DeterministicEmbedder.name, "real": MINILM}
NEAR = 1e-5  # for a network's vectors, whose sums vary with the batch
SECONDS = 300.0  # for an undisturbed run
STATES = """
MATCH (c:Chunk {corpus: $corpus}) RETURN c.status AS status, count(*) AS number ORDER BY status
"""
ATTEMPTS = """
MATCH (c:Chunk {corpus: $corpus}) RETURN count(*) AS chunks, sum(c.attempts) AS attempts, max(c.attempts) AS most
"""


class FailedError(Exception):
    """The test failed."""


@dataclass(frozen=True, kw_only=True)
class House:
    """The server, and runs of indexers on it."""

    own: OwnServer
    indexers: int

    def start(self) -> Process:
        """Start an indexer, which finds the server like a user's process."""
        return subprocess.Popen(
            [sys.executable, "-m", "hgmem", "index", str(resource("examples", "affair")), "--corpus", CORPUS],
            env={
                **os.environ,
                "HGMEM_DATA": str(self.own.server.data),
                "HGMEM_EMBEDDING_MODEL": self.own.embedder,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def undisturbed(self) -> float:
        """Return the seconds of an undisturbed run of the indexers."""
        began = time.monotonic()
        must_succeed([self.start() for _ in range(self.indexers)])
        return time.monotonic() - began

    def empty(self) -> None:
        """Delete the corpus, so that the next run starts from nothing."""
        with HGMem.open(CORPUS, **self.own.settings.model_dump(exclude_none=True)) as client:
            if CORPUS in {row["corpus"] for row in client.corpora()}:
                client.delete()

    def states(self) -> str:
        """Return the number of chunks in each state."""
        with driver(self.own.settings) as opened:
            rows = opened.execute_query(STATES, corpus=CORPUS).records
        return ", ".join(f"{row['number']} {row['status']}" for row in rows) or "none written"

    def repeated(self) -> int:
        """Return the number of written extractions beyond one per chunk."""
        with driver(self.own.settings) as opened:
            (row,) = opened.execute_query(ATTEMPTS, corpus=CORPUS).records
        if self.indexers == 1 and row["most"] > 1:
            raise FailedError(f"a chunk was extracted and saved {row['most']} times by one indexer")
        return int(row["attempts"] - row["chunks"])


@dataclass
class Rounds:
    """Rounds of kills until none is left. Raises on the first difference from the wanted graph."""

    house: House
    kills: list[Kind]
    seconds: float
    draw: random.Random
    rounds: int = 0
    repeated: int = 0
    running: list[Process] = field(default_factory=list)

    def all(self, wanted: Dump) -> None:
        """Run rounds until all kills are used up."""
        while self.kills:
            before = len(self.kills)
            self.house.empty()
            try:
                self.once()
            finally:
                for process in self.running:  # some remain only after a failure
                    process.kill()
            taken = before - len(self.kills)
            must_equal(wanted, self.house, after=f"{taken} kills")
            repeated = self.house.repeated()
            self.repeated += repeated
            self.rounds += 1
            print(f"round {self.rounds}: {taken} kills, {repeated} extractions too many, the same graph", flush=True)

    def once(self) -> None:
        """Start the indexers, and kill at each drawn moment, until they all end before it."""
        self.running = [self.house.start() for _ in range(self.house.indexers)]
        while self.kills and self.alive(self.draw.uniform(0, self.seconds)):
            self.kill(self.kills.pop())
        must_succeed(self.running)
        self.running = []

    def alive(self, moment: float) -> bool:
        """Wait for `moment` seconds; return whether an indexer is still running."""
        until = time.monotonic() + moment
        while any(process.poll() is None for process in self.running):
            if time.monotonic() >= until:
                return True
            time.sleep(0.01)
        return False

    def kill(self, kind: Kind) -> None:
        """Kill an indexer or the server, restart a killed server, and restart the indexers that failed."""
        at = self.draw.choice([at for at, process in enumerate(self.running) if process.poll() is None] or [0])
        victim = self.running[at]
        if kind != "server":
            victim.kill()
            victim.communicate()
        if kind != "indexer":
            self.house.own.kill()
            self.house.own.restart()
            self.running = [process if got_over_it(process) else self.house.start() for process in self.running]
        elif victim.returncode:
            self.running[at] = self.house.start()
        what = "indexer and server" if kind == "both" else kind
        print(f"  killed the {what}; chunks: {self.house.states()}")


def must_succeed(processes: Sequence[Process]) -> None:
    """Wait for the runs; fail if one of them failed."""
    for process in processes:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output = f"{process.communicate()[0]}\nit did not end within {SECONDS:.0f} s"
        if process.returncode:
            raise FailedError(f"index ended with exit code {process.returncode}:\n{output}")


def got_over_it(process: Process) -> bool:
    """Return whether a run survived its killed server; if not, check that it printed an error of ours."""
    if process.stdout and process.stdout.closed:  # this one was killed as well
        return not process.returncode
    output, _ = process.communicate(timeout=SECONDS)
    if process.returncode and ("Traceback" in output or not output.strip()):
        raise FailedError(f"a killed server must give one clear line, index said:\n{output}")
    return not process.returncode


def must_equal(wanted: Dump, house: House, *, after: str) -> None:
    """Raise with the differences, if there are any."""
    tolerance = 0.0 if house.own.embedder == DeterministicEmbedder.name else NEAR
    lines = differences(wanted, dump(house.own.settings, CORPUS), tolerance=tolerance)
    if lines:
        raise FailedError("\n".join([f"the graph after {after} is another:", *shown(lines)]))


def compare(house: House, kills: list[Kind], draw: random.Random) -> None:
    """Run undisturbed, then kill until `kills` is used up; raises on the first difference."""
    house.undisturbed()  # the first run on a new server is slow
    wanted = dump(house.own.settings, CORPUS)
    if house.own.embedder == DeterministicEmbedder.name:
        check(wanted)
    house.empty()
    seconds = house.undisturbed()
    must_equal(wanted, house, after="a second undisturbed run")
    print(f"undisturbed: {seconds:.2f} s, {len(wanted.nodes)} nodes, {wanted.relationships.total()} relationships")
    number, rounds = len(kills), Rounds(house, kills, seconds, draw)
    rounds.all(wanted)
    print(
        f"{number} kills in {rounds.rounds} rounds: each time the graph of an undisturbed run; "
        f"{rounds.repeated} extractions were brought to the database beyond one a chunk"
    )


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Kill the indexer and the server; the graph must stay the same.")
    parser.add_argument("--kills", type=int, default=5, help="of the indexer")
    parser.add_argument("--server-kills", type=int, default=1, help="every second takes the indexer along")
    parser.add_argument("--indexers", type=int, default=1, help="of the same folder at once")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="deterministic")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments and their order")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    on_server: list[Kind] = ["both" if number % 2 else "server" for number in range(given.server_kills)]
    on_indexer: list[Kind] = ["indexer"] * given.kills
    kills = on_indexer + on_server
    draw.shuffle(kills)
    print(f"seed {given.seed}")
    try:
        with alone(embedder=EMBEDDERS[given.embedder]) as own:
            compare(House(own=own, indexers=given.indexers), kills, draw)
    except FailedError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
