"""Metering: calls and exclusive seconds of a piece of work.

`measuring()` opens a meter for the current context, and everything below it reports through `timed()`. Meters are
context variables, so concurrent questions on one client never count each other's calls. Thread pools pass them on by
running work in `contextvars.copy_context()`.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.values.usage import Usage

Kind: TypeAlias = Literal["model", "request", "cache", "embedding", "neo4j"]
TokenKind: TypeAlias = Literal["prompt", "completion", "cached", "estimated"]


@dataclass
class Meter:
    """Counters of one piece of work. `outer` is the enclosing meter, which counts the same."""

    outer: "Meter | None" = None
    calls: dict[Kind, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    seconds: dict[Kind, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    tokens: dict[str, dict[TokenKind, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, kind: Kind, name: str, seconds: float) -> None:
        """Count one call."""
        with self.lock:
            self.calls[kind][name] += 1
            self.seconds[kind][name] += seconds
        if self.outer:
            self.outer.add(kind, name, seconds)

    def add_tokens(self, task: str, counts: Mapping[TokenKind, int]) -> None:
        """Count the tokens of one request."""
        with self.lock:
            for kind, number in counts.items():
                self.tokens[task][kind] += number
        if self.outer:
            self.outer.add_tokens(task, counts)

    def usage(self) -> Usage:
        """Return the counts so far."""
        with self.lock:
            return Usage(
                calls={kind: dict(names) for kind, names in self.calls.items()},
                seconds={
                    kind: {name: round(value, 4) for name, value in names.items()}
                    for kind, names in self.seconds.items()
                },
                tokens={
                    task: {str(kind): number for kind, number in counts.items()} for task, counts in self.tokens.items()
                },
            )


_meter: ContextVar[Meter | None] = ContextVar("hgmem_meter", default=None)
_nested: ContextVar[list[float] | None] = ContextVar("hgmem_nested", default=None)


@contextmanager
def measuring() -> Iterator[Meter]:
    """Yield a meter for the block. An enclosing meter counts it too."""
    meter = Meter(outer=_meter.get())
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


@contextmanager
def timed(kind: Kind, name: str) -> Iterator[None]:
    """Count the block as one call, without the seconds of timed blocks inside it."""
    inner = [0.0]
    token = _nested.set(inner)
    began = time.perf_counter()
    try:
        yield
    finally:
        _nested.reset(token)
        took(kind, name, time.perf_counter() - began, inside=inner[0])


def took(kind: Kind, name: str, seconds: float, *, inside: float = 0.0) -> None:
    """Count one call of `seconds`, of which `inside` were spent in calls that are counted themselves.

    It serves where a block can't: calls that count only if answered, and generators.
    """
    around = _nested.get()
    if around is not None:
        around[0] += seconds
    meter = _meter.get()
    if meter is not None:
        meter.add(kind, name, seconds - inside)


def spent(task: str, counts: Mapping[TokenKind, int]) -> None:
    """Count the tokens of one request."""
    meter = _meter.get()
    if meter is not None:
        meter.add_tokens(task, counts)


@contextmanager
def paused() -> Iterator[None]:
    """Exclude the block's seconds from the timed block around it."""
    began = time.perf_counter()
    try:
        yield
    finally:
        around = _nested.get()
        if around is not None:
            around[0] += time.perf_counter() - began
