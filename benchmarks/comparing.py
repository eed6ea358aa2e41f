"""The workloads of all systems, W1, W2, W4, W5 and W7: each system in its own process, in random turns."""

import random
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import SAME, Child, ChildError, Unsupported
from graphs import Found, load, steps
from measures import mean, ratios, told
from nearest import MOST, Wanted, recall, wanted
from workloads import IN_NEO4J, LACKING, LEFT_TO_THE_CALLER, RETRIEVALS, THREADS, Plan, Retrieval

WARM = 2  # rounds of all cases by all systems
WARM_WRITES = 4  # graphs that each system writes before any is measured
SEED = 7
THREE = RETRIEVALS[1]
MISSES = 1.5  # fewer items, of all items of a case's sub-queries
RECALLS = ("recall_of_entities", "recall_of_chunks")


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A case in a corpus with these copies, queried about `copy`; cases with one title are reported together."""

    title: str
    case: Retrieval
    corpus: str
    copies: tuple[int, ...] = (0,)
    steps: int
    copy: int = 0

    @property
    def name(self) -> str:
        """The name of its steps in a system."""
        return f"{self.title} in {self.corpus}"

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments of `graphs.steps`."""
        case = {"size": self.case.size, "points": self.case.points, "of": self.case.of, "local": self.case.local}
        return {"corpus": self.corpus, "steps": self.steps, "seed": SEED, "copy": self.copy, **case}

    def wanted(self, folder: Path) -> list[list[Wanted]]:
        """Return the nearest items for each sub-query of each step."""
        return wanted(steps(folder, **self.asked), (load(folder, copy) for copy in self.copies))


@dataclass(kw_only=True)
class Compared:
    """The running systems, on one graph; `lacking` has the reasons for missing figures, by workload and system."""

    children: dict[str, Child]
    folder: Path
    plan: Plan
    lacking: dict[str, dict[str, str]] = field(default_factory=dict)

    def writes(self) -> dict[str, Any]:
        """W1: write a whole graph into a new corpus until every index is online; each is a near-copy of the others."""
        seconds: dict[str, list[float]] = defaultdict(list)
        for turn in range(WARM_WRITES + self.plan.writes):
            for name in _shuffled(self.writing):
                done = self._asked("W1", name, "write", **self._at, corpus=f"w1-{turn}", copies=[turn])
                if done is not None and turn >= WARM_WRITES:
                    seconds[name] += done["seconds"]
        return compared(seconds)

    def retrievals(self, corpus: str = "w1-0") -> dict[str, Any]:
        """W2: retrieve a step, in each of its cases, beside the near-copies that W1 wrote; everything is warm."""
        return self.measured(
            [Placed(title=case.name, case=case, corpus=corpus, steps=self.plan.steps) for case in RETRIEVALS]
        )

    def measured(self, placed: Sequence[Placed], names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return, by title, the times of the cases for each system, and their recall of the nearest items."""
        able = {one.name: self._ready(one, names) for one in placed}
        nearest = {one.name: one.wanted(self.folder) for one in placed}
        turns = [(one, at) for one in placed for at in range(one.steps)]
        seconds: dict[str, dict[str, list[float]]] = {one.title: defaultdict(list) for one in placed}
        found: dict[str, dict[str, list[dict[str, float]]]] = {one.title: defaultdict(list) for one in placed}
        for turn in range(self.plan.rounds + WARM):
            for one, at in random.sample(turns, len(turns)):
                for name in _shuffled(able[one.name]):
                    done = self._asked(one.title, name, "retrieve", as_=one.name, at=at)
                    if done is None:  # a system that fails midway has no figure
                        able[one.name].remove(name)
                        seconds[one.title].pop(name, None)
                        found[one.title].pop(name, None)
                    elif turn >= WARM:
                        seconds[one.title][name].append(done["seconds"])
                    if done is not None and turn == WARM:
                        found[one.title][name].append(bought(done, nearest[one.name][at]))
        asked: Counter[str] = Counter()
        for one in placed:
            asked[one.title] += one.steps * one.case.size
        return {
            title: {"sub-queries": asked[title], **compared(taken), "found": means(found[title])}
            for title, taken in seconds.items()
        }

    def throughput(self, corpus: str = "w1-0") -> dict[str, Any]:
        """W4: steps of three sub-queries per second, by the number of threads of one process."""
        placed = Placed(title="throughput", case=THREE, corpus=corpus, steps=self.plan.steps)
        able = self._ready(placed, None)
        found: dict[str, Any] = {}
        for threads in THREADS:
            taken: dict[str, list[float]] = defaultdict(list)
            for turn in range(self.plan.windows + 1):  # the first one warms up
                for name in _shuffled(able):
                    asked = {"as_": placed.name, "threads": threads, "seconds": self.plan.seconds}
                    rate = self._asked("W4", name, "throughput", **asked)
                    if turn and rate is not None:
                        taken[name].append(rate)
            rates = {name: round(statistics.median(each), 2) for name, each in taken.items()}
            found[f"{threads} threads"] = {"steps_a_second": rates, "against_floor": ratios(rates, to="floor")}
        return found

    def warmed(self) -> str:
        """Let each system write some graphs outside of the figures; return the corpus of one."""
        for turn in range(WARM_WRITES):
            self._written({f"warm-{turn}": (0,)}, until=1)
        return "warm-0"

    def grown(self, corpus: str, copies: Sequence[int], *, until: int) -> dict[str, dict[str, float]]:
        """Write copies into one corpus by each system with a limit of `until` or more; return times and memory."""
        return self._written({corpus: copies}, until=until)

    def spread(self, corpora: int) -> dict[str, dict[str, float]]:
        """Write one copy into each corpus by each system with a sufficient limit; return times and memory."""
        return self._written({f"spread-{copy}": [copy] for copy in range(corpora)}, until=corpora)

    def _written(self, given: dict[str, Sequence[int]], *, until: int) -> dict[str, dict[str, float]]:
        took: dict[str, dict[str, float]] = {}
        for name in [name for name in self.writing if until <= self.plan.until(name)]:
            seconds: list[float] = []
            for corpus, copies in given.items():
                done = self._asked("W5", name, "write", **self._at, corpus=corpus, copies=list(copies), limit=7200)
                if done is None:
                    break
                seconds += done["seconds"]
            else:
                took[name] = {
                    "seconds": round(sum(seconds), 2),
                    "seconds_a_graph": mean(seconds[-5:]),
                    "megabytes_at_most": round(done["megabytes_at_most"]),
                }
        return took

    @property
    def writing(self) -> list[str]:
        """The systems that write; the others read what one of these wrote."""
        return [name for name in self.children if name not in SAME]

    def reading(self, written: Iterable[str]) -> list[str]:
        """Return the systems that can read what these wrote."""
        there = set(written)
        return [name for name in self.children if SAME.get(name, name) in there]

    @property
    def _at(self) -> dict[str, str]:
        return {"folder": str(self.folder)}

    def _ready(self, placed: Placed, names: Iterable[str] | None) -> list[str]:
        """Prepare the case in each system; return the systems that support it."""
        return [
            name
            for name in (self.children if names is None else names)
            if self._asked(placed.title, name, "ready", as_=placed.name, **self._at, **placed.asked)
        ]

    def _asked(self, workload: str, name: str, do: str, **arguments: Any) -> Any:
        """Return a system's reply; on failure, record the reason and return None."""
        try:
            answer = self.children[name].ask(do, **arguments)
        except ChildError as error:
            print(error, file=sys.stderr)
            self.lacking.setdefault(workload, {})[name] = f"failed: {error}".splitlines()[0][:300]
            return None
        if isinstance(answer, Unsupported):
            self.lacking.setdefault(workload, {})[name] = answer.reason
            return None
        return answer


def compared(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return the times of each system, and the ratios of their medians to the floor's."""
    times = {name: told(of) for name, of in sorted(seconds.items())}
    medians = {name: one["median_ms"] for name, one in times.items()}
    return {"times": times, "against_floor": ratios(medians, to="floor")}


def _shuffled(names: Sequence[str]) -> list[str]:
    return random.sample(names, len(names))


def bought(done: dict[str, Any], nearest: Sequence[Wanted]) -> dict[str, float]:
    """Return the number of items that a step found, and its recall of the nearest."""
    found = Found(entities=tuple(done["entities"]), relations=done["relations"], chunks=tuple(done["chunks"]))
    counts = {"entities": len(found.entities), "relations": found.relations, "chunks": len(found.chunks)}
    return {**counts, **{f"recall_of_{kind}": part for kind, part in recall(found, nearest).items()}}


def means(found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the mean counts and recall of each system's steps."""
    return {
        name: {kind: mean(one[kind] for one in each if kind in one) for kind in each[0]} for name, each in found.items()
    }


def against_peers(cases: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the median and recall of hgmem, of the fastest peer and of the fastest equally good peer, for each case.

    A peer is None if none can run the case. Every peer here limits its search to its corpus, or compares every vector
    of it; none filters afterwards. A peer that finds one item less than hgmem, of all items of a case's sub-queries,
    counts as equally good.
    """
    return [_against(name, case) for name, case in cases.items() if "product" in case["times"]]


def _against(name: str, case: Mapping[str, Any]) -> dict[str, Any]:
    own = case["found"]["product"]
    peers = sorted((case["times"][peer]["median_ms"], peer) for peer in IN_NEO4J if peer in case["times"])
    same = MISSES / (MOST * case["sub-queries"])
    whole = [(ms, peer) for ms, peer in peers if _as_much(case["found"][peer], own, same)]
    return {
        "case": name,
        "product_ms": case["times"]["product"]["median_ms"],
        "product_found": own,
        "fastest": _peer(peers, name, case),
        "fastest_as_good": _peer(whole, name, case),
    }


def _peer(peers: list[tuple[float, str]], name: str, case: Mapping[str, Any]) -> dict[str, Any] | None:
    if not peers:
        return None
    ms, peer = peers[0]
    ratio = round(ms / case["times"]["product"]["median_ms"], 3)
    return {"name": peer, "ms": ms, "ratio": ratio, "found": case["found"][peer], "lacks": _lacks(name, peer)}


def _as_much(found: Mapping[str, float], own: Mapping[str, float], same: float) -> bool:
    return all(found.get(kind, 0.0) >= own[kind] - same for kind in RECALLS if kind in own)


def _lacks(name: str, peer: str) -> str:
    beside = any(case.points for case in RETRIEVALS if case.name == name)
    parts = [LACKING.get(peer, ""), LEFT_TO_THE_CALLER.get(peer, "") if beside else ""]
    return "; ".join(part for part in parts if part)
