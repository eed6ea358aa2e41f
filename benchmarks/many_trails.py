"""Measure trails in number: replay beside many others, learnings from several threads, and hgmem's own time a jump.

Trails are written as learnings write them, each with a vector of its own, between random nodes of a corpus, and as many
learnings. One trail is touched by all of them.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hgmem import HGMem
from hgmem.graph.builds import built_rows
from hgmem.graph.values import vector
from hgmem.systems.remindrag.reached import followed, strongest
from hgmem.systems.remindrag.recipes import DEFAULT
from hgmem.systems.remindrag.touches import MOST, strong_trails
from hgmem.systems.remindrag.trails import put_trails, trail_key, unlearn
from hgmem.systems.remindrag.walk_record import SYSTEM
from hgmem.text.identity import built_uid, layer_key
from hgmem.values.usage import Usage

TIES = ("RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF")
OWNER = "benchmark"


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="trails", help="a corpus with a build of remindrag")
    parser.add_argument("--numbers", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--learnings", type=int, default=1_000, help="that eight threads learn; 0: none, and no jumps")
    options = parser.parse_args()
    with HGMem.open(options.corpus) as client:
        if options.learnings:
            print(json.dumps({"a jump": jumps(client)}))
            print(json.dumps({"learnings": learnt(client, options.learnings)}))
        query = client.embedder.embed(["Why do the therns revere the plant men?"], kind="query")[0]
        where = {"corpus": client.corpus, "documents": None, "vector": vector(query)}
        seeds = [row["uid"] for row in client._services(None).database.run("seeds", **where, k=2, over=150)]
        filling = Filling(client=client, query=query, seeds=seeds)
        for number in options.numbers:
            print(json.dumps({"trails and learnings": number, **replays(filling, number)}), flush=True)
        print(json.dumps({"one of all taken back in seconds": taken_back(filling)}))
    return 0


@dataclass(kw_only=True)
class Filling:
    """Trails and learnings written so far, with their vectors. The first asks `query`, every hundredth nearly that.

    Each learning touches two random trails and the one from the first seed, which so has as many touches as there are.
    """

    client: HGMem
    query: Any
    seeds: list[str]
    rng: Any = field(default_factory=lambda: np.random.default_rng(27))
    trails: dict[str, Any] = field(default_factory=dict)
    learnings: dict[str, Any] = field(default_factory=dict)

    def fill(self, number: int) -> float:
        """Write trails and learnings up to a number, and return the learnings a second."""
        database, corpus = self.client._services(None).database, self.client.corpus
        names = built_rows(database, corpus=corpus, system=SYSTEM, kind="EntityName", vectors=False)
        nodes = sorted(row["key"] for row in names)
        chain = list(pairwise([*self.seeds, *nodes[:10]]))
        rows = [] if self.trails else [_row(corpus, pair, np.asarray(self.query)) for pair in chain]
        known = set(self.trails)
        while len(known) < number:
            first, second = (nodes[at] for at in self.rng.integers(len(nodes), size=2))
            row = _row(corpus, (first, second), self._near() if len(known) % 100 == 0 else self._any())
            if first != second and row["uid"] not in known:
                known.add(row["uid"])
                rows.append(row)
        for at in range(0, len(rows), 2_000):
            put_trails(database, corpus=corpus, owner=OWNER, rows=rows[at : at + 2_000])
        self.trails |= {row["uid"]: row["vector"] for row in rows}
        uids, began, before = list(self.trails), time.perf_counter(), len(self.learnings)
        for at in range(before, number, 1_000):
            database.write(self._learn, uids, range(at, min(at + 1_000, number)))
        return (number - before) / (time.perf_counter() - began)

    def _learn(self, transaction: Any, uids: list[str], numbers: range) -> None:
        layer = layer_key(self.client.corpus, SYSTEM, "Learning")
        for number in numbers:
            uid = self.uid(number)
            asked = np.asarray(self.query) if number == 0 else self._near() if number % 100 == 0 else self._any()
            self.learnings[uid] = _unit(asked)
            learning = {
                "uid": uid, "key": uid, "question": uid, "owner": OWNER, "memory": uid, "penalty": "fade", "starts": [],
                "number": number, "vector": vector(self.learnings[uid]),
            }  # fmt: skip
            chosen = uids[: 1 if number else 11] + [uids[at] for at in self.rng.integers(len(uids), size=2)]
            touches = [{"uid": each, "effective": True, "chunks": "", "beside": 0.0} for each in chosen]
            parts = {"layer_key": layer, "learning": learning, "touches": touches}
            transaction.run("put_learning", corpus=self.client.corpus, **parts)

    def uid(self, number: int) -> str:
        """Return the uid of a learning."""
        return built_uid(self.client.corpus, SYSTEM, kind="Learning", key=f"{OWNER} {number}")

    def _any(self) -> Any:
        return self.rng.normal(size=len(self.query))

    def _near(self) -> Any:
        """Return a vector with a cosine of .7 to 1 to the question."""
        aside = _unit(self._any())
        return np.asarray(self.query) + self.rng.uniform(0, 1) * aside


def replays(filling: Filling, number: int) -> dict[str, Any]:
    """Return the milliseconds of a replay among so many trails and learnings, and the share of the nearest it found."""
    told: dict[str, Any] = {"learnings a second": round(filling.fill(number))}
    client, query = filling.client, filling.query
    services = client._services(None)
    where = {"corpus": client.corpus, "documents": None}
    for recall in ("touches", "vector"):
        times = []
        for _ in range(22):
            began = time.perf_counter()
            strong = strong_trails(
                services.database, corpus=client.corpus, owners=["", OWNER], query=query,
                config=replace(DEFAULT, recall=recall),
            )  # fmt: skip
            middle = time.perf_counter()
            hops = strongest(followed(strong, seeds=filling.seeds, ties=TIES, within=None), most=200)
            asked = [{"uid": hop.uid, "source": hop.source} for hop in hops]
            services.database.run("replay", **where, hops=asked)
            times.append((middle - began, time.perf_counter() - middle))
        told[recall] = {
            "median ms": round(1_000 * statistics.median(sum(each) for each in times[2:]), 1),
            "of it to find strong trails": round(1_000 * statistics.median(first for first, _ in times[2:]), 1),
            "strong": len(strong),
            "reached": len(hops),
        }
    near = {"corpus": client.corpus, "owners": ["", OWNER], "vector": vector(query), "least": -1.0}
    trails = [row["uid"] for row in services.database.run("near_trails", **near, most=500)]
    told["of the 500 nearest trails"] = _agreement(query, filling.trails, trails)
    touched = services.database.run("near_touches", **near, most=MOST)
    numbers = sorted({number for row in touched for _, _, number in row["touches"]})
    told["of the 200 nearest learnings"] = _agreement(query, filling.learnings, [filling.uid(at) for at in numbers])
    times = []
    for _ in range(12):
        began = time.perf_counter()
        services.database.run(
            "starts", **where, owners=near["owners"], vector=near["vector"], k=2, least=0.7, most=MOST
        )
        times.append(time.perf_counter() - began)
    return {**told, "starts ms": round(1_000 * statistics.median(times[2:]), 1)}


def taken_back(filling: Filling) -> float:
    """Return the seconds that it takes to take back one learning, whose most touched trail all others touched too."""
    services = filling.client._services(None)
    middle = filling.uid(len(filling.learnings) // 2)
    began = time.perf_counter()
    if services.database.write(unlearn, services, owner=OWNER, uids=[middle]) != 1:
        raise SystemExit("the learning was not there")
    return round(time.perf_counter() - began, 1)


def _agreement(query: Any, vectors: dict[str, Any], found: list[str]) -> float:
    """Return the share of the nearest vectors that were found, of as many."""
    uids = list(vectors)
    order = np.argsort(-(np.array([vectors[uid] for uid in uids]) @ np.asarray(query)))[: len(found)]
    return round(len({uids[at] for at in order} & set(found)) / max(1, len(order)), 4)


def _unit(direction: Any) -> Any:
    return (direction / np.linalg.norm(direction)).astype(np.float32)


def _row(corpus: str, ends: tuple[str, str], direction: Any) -> dict[str, Any]:
    key = trail_key(OWNER, ends)
    return {
        "uid": built_uid(corpus, SYSTEM, kind="Trail", key=key), "key": key, "tie": "RELATES", "ends": list(ends),
        "length": 0.98, "alike": 0.4, "vector": np.float32(0.98) * _unit(direction), "kept": "",
    }  # fmt: skip


def learnt(client: HGMem, number: int) -> dict[str, Any]:
    """Return the learnings a second of eight threads, and whether each has a number of its own."""
    memories = [
        client.ask(f"Who is John Carter's friend number {at}?", system="remindrag", settings={"trails": False}).memory
        for at in range(number)
    ]
    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda memory: client.remindrag.learn(memory=memory), memories))
    seconds = time.perf_counter() - began
    numbers = sorted(one.number for found in done for one in found)
    whole = client.check().findings == ()  # each trail is the replay of its learnings in order
    began = time.perf_counter()
    random.Random(1).shuffle(memories)  # noqa: S311
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda memory: client.remindrag.unlearn(memory=memory), memories))
    return {
        "a second": round(number / seconds, 1),
        "numbered without a gap": numbers == list(range(numbers[0], numbers[0] + number)),
        "equal to their order": whole,
        "undone in seconds": round(time.perf_counter() - began, 1),
        "trails left": len(client.remindrag.trails(limit=10)),
    }


def jumps(client: HGMem) -> dict[str, Any]:
    """Return the milliseconds of a jump outside the model and the embedder, over ten questions."""
    own, count = [], 0
    for at in range(12):
        settings = {"fill": False, "max_jumps": 10}
        answer = client.ask(
            f"What became of the black pirates' ship number {at}?", system="remindrag", settings=settings
        )
        count = max(count, len(answer.steps) - 1)
        if len(answer.steps) > 1 and at >= 2:
            own.append(1_000 * _outside(answer.seconds, answer.usage) / (len(answer.steps) - 1))
    return {"median ms": round(statistics.median(own), 1), "longest walk": count}


def _outside(seconds: float, usage: Usage) -> float:
    """Return the seconds outside the model and the embedder, that of reading the question included."""
    others = sum(sum(usage.seconds.get(kind, {}).values()) for kind in ("model", "embedding"))
    return seconds - others


if __name__ == "__main__":
    os.environ.setdefault("HGMEM_MODEL", "")
    sys.exit(main())
