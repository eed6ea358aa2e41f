"""What a piece of work cost: calls and exclusive seconds, gathered for whoever is measuring, if anyone is.

`measuring()` opens a meter for the current context; everything below it reports through `timed()`. Meters are
context variables, so that two questions on one client never count each other's calls; a thread pool carries
them on by running its work in `contextvars.copy_context()`.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.model import Usage

Kind: TypeAlias = Literal["model", "embedding", "neo4j"]


@dataclass
class Meter:
    """Counters of one piece of work; `outer` is the meter that also wants to know."""

    outer: "Meter | None" = None
    calls: dict[Kind, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    seconds: dict[Kind, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    prompt_tokens: int = 0
    completion_tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, kind: Kind, name: str, seconds: float) -> None:
        """Count one call."""
        with self.lock:
            self.calls[kind][name] += 1
            self.seconds[kind][name] += seconds
        if self.outer:
            self.outer.add(kind, name, seconds)

    def usage(self) -> Usage:
        """Return what was counted so far."""
        with self.lock:
            return Usage(
                calls={kind: dict(names) for kind, names in self.calls.items()},
                seconds={
                    kind: {name: round(value, 4) for name, value in names.items()}
                    for kind, names in self.seconds.items()
                },
                prompt_tokens=self.prompt_tokens,
                completion_tokens=self.completion_tokens,
            )


_meter: ContextVar[Meter | None] = ContextVar("hgmem_meter", default=None)
_nested: ContextVar[list[float] | None] = ContextVar("hgmem_nested", default=None)


@contextmanager
def measuring() -> Iterator[Meter]:
    """Yield a meter that counts what happens inside the block; an enclosing one counts it too."""
    meter = Meter(outer=_meter.get())
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


@contextmanager
def timed(kind: Kind, name: str) -> Iterator[None]:
    """Count the block as one call, its seconds without those of timed blocks inside it."""
    inner = [0.0]
    token = _nested.set(inner)
    began = time.perf_counter()
    try:
        yield
    finally:
        _nested.reset(token)
        elapsed = time.perf_counter() - began
        around = _nested.get()
        if around is not None:
            around[0] += elapsed
        meter = _meter.get()
        if meter is not None:
            meter.add(kind, name, elapsed - inner[0])
