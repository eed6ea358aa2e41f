"""Kills builds of a system, and the server under them, at random moments: the graph must end as if nothing happened.

    python tests/long/build_kills.py [--kills 5] [--server-kills 1] [--documents 60] [--seed N]

The system is that of tests/toy/, with units that depend on each other, a fold, and vectors that a later stage gives.
With `--system` it is gists with their pyramid, hypermem with topics of conversations, or remindrag with
anchors and synonyms. Rounds, kills and the comparison are those of kills.py. After the last round, a second run has to
make nothing.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
from kills import CORPUS, FailedError, House, Kind, Process, compare

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "toy")]
from dumping import TIMES, driver
from servers import alone

from hgmem import HGMem
from hgmem.errors import UsageError
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document

TOY = Path(__file__).parents[1] / "toy"
STATES = """
MATCH (u:Unit {corpus: $corpus}) RETURN u.stage + ' ' + u.status AS status, count(*) AS number ORDER BY status
"""
LEASED = """
MATCH (b:Build {corpus: $corpus}) WHERE b.heartbeat > datetime() - duration({seconds: $timeout}) RETURN b.uid AS uid
"""
# Options that give the few short documents a build of several stages.
OPTIONS: dict[str, dict[str, int]] = {
    "toy": {},
    "gists": {"passage_tokens": 64, "ratio": 2, "memory_tokens": 64},
    "hypermem": {"longest_episode": 4},
    "remindrag": {"passage_tokens": 64},
}
LEASES = {"claim_timeout": 2, "heartbeat": 0.5}
RUNS = frozenset({"finished_at", "changed_at", "change"})  # properties of a build that differ between runs
WORDS = ("anchor", "barrel", "candle", "dagger", "engine", "fiddle", "garnet", "hammer", "insect", "jacket")


@dataclass(frozen=True, kw_only=True)
class BuildHouse(House):
    """The server, and runs of builds on it."""

    documents: int
    system: str

    def start(self) -> Process:
        """Start a build, which finds the server and the system like a user's process.

        The lease of one that was killed has to expire before.
        """
        with driver(self.own.settings) as opened:
            while opened.execute_query(LEASED, corpus=CORPUS, timeout=LEASES["claim_timeout"]).records:
                time.sleep(0.1)
        return subprocess.Popen(
            [sys.executable, "-m", "hgmem", "build", self.system, "--corpus", CORPUS, "--yes", *self._options()],
            env={
                **os.environ,
                "HGMEM_DATA": str(self.own.server.data),
                "HGMEM_EMBEDDING_MODEL": self.own.embedder,
                **{f"HGMEM_{name.upper()}": str(seconds) for name, seconds in LEASES.items()},
                "PYTHONPATH": str(TOY),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def fill(self) -> None:
        """Index the documents."""
        with self._client() as client:
            made = conversation if self.system == "hypermem" else document
            client.add([made(number) for number in range(self.documents)])

    def empty(self) -> None:
        """Delete the build, so that the next run starts from nothing."""
        with self._client() as client:
            try:
                client.delete(system=self.system)
            except UsageError as error:
                if "has no build" not in str(error):
                    raise

    def states(self) -> str:
        """Return the number of units of each stage in each state."""
        with driver(self.own.settings) as opened:
            rows = opened.execute_query(STATES, corpus=CORPUS).records
        return ", ".join(f"{row['number']} {row['status']}" for row in rows) or "none written"

    def repeated(self) -> int:
        """Return the number of written units beyond one write each."""
        with driver(self.own.settings) as opened:
            (row,) = opened.execute_query(
                "MATCH (u:Unit {corpus: $corpus}) RETURN sum(u.attempts) - count(u) AS more", corpus=CORPUS
            ).records
        if row["more"]:
            raise FailedError(f"{row['more']} units were made and saved more than once")
        return 0

    def again(self) -> None:
        """Run once more. Raises if that makes anything."""
        with self._client() as client:
            done = client.build(self.system, settings=OPTIONS[self.system])
        if done.made or done.deleted or done.calls:
            raise FailedError(f"a second run did something: {done}")

    def _options(self) -> list[str]:
        return [part for name, value in OPTIONS[self.system].items() for part in ("--set", f"{name}={value}")]

    def _client(self) -> HGMem:
        return HGMem.open(CORPUS, **self.own.settings.model_dump(exclude_none=True) | LEASES)


def document(number: int) -> Document:
    """Return a document with a word of its own."""
    text = f"The {WORDS[number % 10]} of house {number} is called only{number}. It was seen near the pier."
    return Document(id=f"d{number}", title=f"House {number}", text=text)


def conversation(number: int) -> Conversation:
    """Return a conversation of two days with words of its own."""
    thing = WORDS[number % 10]
    said = [
        Message(
            "Ann" if at % 2 else "Bo", f"The {thing} {number} was seen {place}.", f"2024-03-0{1 + at // 3}T09:0{at}"
        )
        for at, place in enumerate(("here", "there", "nowhere", "at sea", "at home", "in town"))
    ]
    return Conversation(id=f"c{number}", title=f"Talk {number}", messages=said)


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Kill a build and the server; the graph must stay the same.")
    parser.add_argument("--kills", type=int, default=5, help="of the build")
    parser.add_argument("--server-kills", type=int, default=1, help="every second takes the build along")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--system", choices=sorted(OPTIONS), default="toy")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments and their order")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    kills: list[Kind] = ["indexer"] * given.kills
    kills += ["both" if number % 2 else "server" for number in range(given.server_kills)]
    draw.shuffle(kills)
    print(f"seed {given.seed}")
    sys.modules["dumping"].TIMES = TIMES | RUNS  # type: ignore[attr-defined]
    try:
        with alone() as own:
            house = BuildHouse(own=own, indexers=1, documents=given.documents, system=given.system)
            house.fill()
            compare(house, kills, draw)
            house.again()
    except FailedError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
