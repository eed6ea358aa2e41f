"""LangChain runs as comparable trees: the runs that a tracer saw, in order, with their children."""

import threading
from dataclasses import dataclass
from typing import Any

from langchain_core.tracers import BaseTracer
from langchain_core.tracers.schemas import Run


class Collector(BaseTracer):
    """A tracer that collects complete trees of runs and checks that every started run ends."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []
        self.threads: set[int] = set()

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    def _on_run_create(self, run: Run) -> None:
        self.threads.add(threading.get_ident())


@dataclass(frozen=True, slots=True)
class Told:
    """One run of a tree: its name, its kind, our tags, and the runs below it."""

    name: str
    kind: str
    tags: tuple[str, ...]
    below: tuple["Told", ...] = ()


def told(run: Run) -> Told:
    """Return a run with its descendants, in order of their start."""
    below = sorted(run.child_runs, key=lambda one: one.dotted_order or "")
    ours = tuple(tag for tag in run.tags or () if tag.startswith("hgmem:"))
    return Told(run.name, run.run_type, ours, tuple(told(one) for one in below))


def every(run: Run) -> list[Run]:
    """Return a run and its descendants."""
    return [run, *(one for child in run.child_runs for one in every(child))]


def used(run: Run) -> Any:
    """Return the token counts of a model's run."""
    assert run.outputs is not None
    return run.outputs["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
