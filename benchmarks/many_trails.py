"""Measure trails in number: replay beside many others, learnings from several threads, and hgmem's own time a jump.

Trails are written as learnings write them, each with a vector of its own, between random nodes of a corpus.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from hgmem import HGMem
from hgmem.graph.builds import built_rows
from hgmem.graph.values import vector
from hgmem.systems.remindrag.recipes import DEFAULT
from hgmem.systems.remindrag.trails import held_trails, put_trails, trail_key
from hgmem.systems.remindrag.walk_record import SYSTEM
from hgmem.text.identity import built_uid, layer_key
from hgmem.values.usage import Usage

TIES = ("RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF")
OWNER = "benchmark"
TOUCHED = 20  # trails of a learning


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="trails", help="a corpus with a build of remindrag")
    parser.add_argument("--numbers", type=int, nargs="+", default=[0, 1_000, 10_000, 100_000])
    parser.add_argument("--learnings", type=int, default=1_000)
    options = parser.parse_args()
    with HGMem.open(options.corpus) as client:
        print(json.dumps({"a jump": jumps(client)}))
        print(json.dumps({"learnings": learnt(client, options.learnings)}))
        for number in options.numbers:
            print(json.dumps({"trails": number, **replays(client, number)}), flush=True)
    return 0


def replays(client: HGMem, number: int) -> dict[str, Any]:
    """Return the milliseconds of a replay beside so many trails, by touches and vectors, and the nodes it reaches."""
    services = client._services(None)
    query = client.embedder.embed(["Why do the therns revere the plant men?"], kind="query")[0]
    where = {"corpus": client.corpus, "documents": None, "vector": vector(query)}
    start = [row["uid"] for row in services.database.run("seeds", **where, k=2, over=150)]
    _fill(client, services.database, number, start, query)
    told = {}
    for recall in ("touches", "vector"):
        times = []
        for _ in range(12):
            began = time.perf_counter()
            config = replace(DEFAULT, recall=recall)
            held = held_trails(services, query, owners=["", OWNER], config=config)
            held |= {"ties": list(TIES), "most": 0}
            found = services.database.run("replay", **where, owners=["", OWNER], seeds=start, rule=held)
            times.append(1_000 * (time.perf_counter() - began))
        told[recall] = {
            "median ms": round(statistics.median(times[2:]), 1),
            "reached": len({row["uid"] for row in found}),
        }
    return told


def _fill(client: HGMem, database: Any, number: int, start: list[str], query: Any) -> None:
    """Write random trails up to a number, and a strong one from each seed to the next node, five deep."""
    rng = np.random.default_rng(27)
    chance = random.Random(27)  # noqa: S311
    names = built_rows(database, corpus=client.corpus, system="remindrag", kind="EntityName", vectors=False)
    nodes = sorted(row["key"] for row in names)
    pairs = ((chance.choice(nodes), chance.choice(nodes)) for _ in iter(int, 1))
    rows = [
        _row(client.corpus, pair, rng.normal(size=len(query))) for pair in islice(pairs, number) if len(set(pair)) == 2
    ]
    chain = [*start, *nodes[:10]]
    rows += [_row(client.corpus, pair, np.asarray(query)) for pair in pairwise(chain)]
    for at in range(0, len(rows), 2_000):
        put_trails(database, corpus=client.corpus, owner=OWNER, rows=rows[at : at + 2_000])
    random_ones = (rows[at : min(at + TOUCHED, number)] for at in range(0, number, TOUCHED))
    touched = [
        *((rng.normal(size=len(query)), some) for some in random_ones),
        (np.asarray(query), rows[-len(chain) + 1 :]),
    ]
    layer = layer_key(client.corpus, SYSTEM, "Learning")
    for order, (direction, trails) in enumerate(touched):
        uid = built_uid(client.corpus, SYSTEM, kind="Learning", key=f"{OWNER} {number} {order}")
        learning = {
            "uid": uid, "key": uid, "question": uid, "owner": OWNER, "memory": "", "penalty": "fade", "starts": [],
            "number": order, "vector": vector((direction / np.linalg.norm(direction)).astype(np.float32)),
        }  # fmt: skip
        touches = [{"uid": row["uid"], "effective": True, "chunks": "", "beside": 0.0} for row in trails]
        database.run("put_learning", corpus=client.corpus, layer_key=layer, learning=learning, touches=touches)


def _row(corpus: str, ends: tuple[str, str], direction: Any) -> dict[str, Any]:
    vector = 0.98 * direction / np.linalg.norm(direction)
    uid = built_uid(corpus, SYSTEM, kind="Trail", key=trail_key(OWNER, ends))
    return {
        "uid": uid, "key": uid, "tie": "RELATES", "ends": list(ends), "length": 0.98, "alike": 0.4,
        "vector": vector.astype(np.float32),
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
