"""The workloads that systems share, W1, W2, W4, W5 and W7: each in its own process, taking turns in random order."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import Child, ChildError, Unsupported
from measures import ratios, told
from workloads import RETRIEVALS, THREADS, Plan, Retrieval

WARM = 2  # rounds
SEED = 7


@dataclass(kw_only=True)
class Compared:
    """The systems at work, on one graph; `lacking` is what each can't, by workload and system."""

    children: dict[str, Child]
    folder: Path
    plan: Plan
    say: Callable[[str], None]
    lacking: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def writes(self) -> dict[str, Any]:
        """W1: a whole graph into a new corpus, every index online."""
        seconds: dict[str, list[float]] = defaultdict(list)
        for turn in range(self.plan.writes + 1):
            for name, child in self._shuffled():
                done = self._asked("W1", name, child, "write", corpus=f"w1-{turn}", copies=[0])
                if done is not None and turn:
                    seconds[name] += done["seconds"]
        return self._compared(seconds)

    def retrievals(self, corpus: str = "w1-0") -> dict[str, Any]:
        """W2: a step of sub-queries, in each of its cases."""
        return {case.name: self.retrieval(case, corpus) for case in RETRIEVALS}

    def retrieval(self, case: Retrieval, corpus: str, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return what a case takes each of the systems, and what they find."""
        able = {name: child for name, child in self._shuffled(names) if self._ready(case, name, child, corpus)}
        seconds: dict[str, list[float]] = defaultdict(list)
        found: dict[str, dict[str, int]] = {}
        for turn in range(self.plan.rounds + WARM):
            for at in range(self.plan.steps):
                for name, child in random.sample(list(able.items()), len(able)):
                    done = child.ask("retrieve", at=at)
                    found[name] = {kind: done[kind] for kind in ("entities", "relations")}
                    found[name]["chunks"] = len(done["chunks"])
                    if turn >= WARM:
                        seconds[name].append(done["seconds"])
        return {**self._compared(seconds), "found": found}

    def throughput(self, corpus: str = "w1-0") -> dict[str, Any]:
        """W4: steps of three sub-queries a second, by so many threads of one process."""
        able = [name for name, child in self._shuffled() if self._ready(RETRIEVALS[1], name, child, corpus)]
        found: dict[str, Any] = {}
        for threads in THREADS:
            rates = {}
            for name, child in self._shuffled(able):
                child.ask("throughput", threads=threads, seconds=1)
                rates[name] = round(child.ask("throughput", threads=threads, seconds=self.plan.seconds), 2)
            found[f"{threads} threads"] = {"steps_a_second": rates, "against_floor": ratios(rates, to="floor")}
        return found

    def growth(self, sizes: Callable[[], dict[str, float]]) -> list[dict[str, Any]]:
        """W5 and W7: writing and a step in a corpus that grows; `sizes` tells the server's megabytes and disk."""
        rows, written = [], 0
        for size in self.plan.sizes:
            names = [name for name in self.children if size <= self._until(name)]
            took = {}
            for name in names:
                copies = list(range(written, size))
                done = self._asked("W5", name, self.children[name], "write", corpus="grown", copies=copies, limit=7200)
                if done is not None:
                    took[name] = {
                        "seconds": round(sum(done["seconds"]), 2),
                        "seconds_a_graph": round(sum(done["seconds"][-5:]) / len(done["seconds"][-5:]), 3),
                        "megabytes_at_most": round(done["megabytes_at_most"]),
                    }
            written = size
            step = self.retrieval(RETRIEVALS[1], "grown", took)
            rows.append({"graphs": size, "write": took, "step": step, **sizes()})
            self.say(f"W5: {size} graphs in one corpus")
        return rows

    def _until(self, name: str) -> int:
        if name == "product":
            return max(self.plan.sizes)
        return self.plan.floor_until if name == "floor" else self.plan.peers_until

    def _shuffled(self, names: Iterable[str] | None = None) -> list[tuple[str, Child]]:
        chosen = [(name, self.children[name]) for name in (self.children if names is None else names)]
        return random.sample(chosen, len(chosen))

    def _ready(self, case: Retrieval, name: str, child: Child, corpus: str) -> bool:
        wanted = {"size": case.size, "points": case.points, "of": case.of, "local": case.local}
        done = self._asked(case.name, name, child, "ready", corpus=corpus, steps=self.plan.steps, seed=SEED, **wanted)
        return done is not None

    def _asked(self, workload: str, name: str, child: Child, do: str, **arguments: Any) -> Any:
        """Return what a system answers; None, with the reason kept, where it can't."""
        try:
            answer = child.ask(do, folder=str(self.folder), **arguments)
        except ChildError as error:
            self.lacking[workload][name] = str(error).splitlines()[0][:300]
            return None
        if isinstance(answer, Unsupported):
            self.lacking[workload][name] = answer.reason
            return None
        return answer

    @staticmethod
    def _compared(seconds: dict[str, list[float]]) -> dict[str, Any]:
        times = {name: told(of) for name, of in sorted(seconds.items())}
        medians = {name: one["median_ms"] for name, one in times.items()}
        return {"times": times, "against_floor": ratios(medians, to="floor")}
