"""Meters and budgets: what a piece of work spends in calls, seconds and tokens, and how much of it a run may spend.

`measuring()` opens a meter for the current context, and everything below it reports through `timed()`. Meters are
context variables, so concurrent questions on one client never count each other's calls. Thread pools pass them on by
running work in `contextvars.copy_context()`. `spending()` opens a budget in the same way.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.errors import BudgetError
from hgmem.text.language import counted
from hgmem.values.usage import Usage

CallKind: TypeAlias = Literal["model", "request", "cache", "embedding", "neo4j"]
TokenKind: TypeAlias = Literal["prompt", "completion", "cached", "estimated"]
_nested: ContextVar[list[float] | None] = ContextVar("hgmem_nested", default=None)


@dataclass
class Meter:
    """Counters of one piece of work. `outer` is the enclosing meter, which counts the same."""

    outer: "Meter | None" = None
    calls: dict[CallKind, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    seconds: dict[CallKind, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    tokens: dict[str, dict[TokenKind, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    began: float = field(default_factory=time.perf_counter, repr=False, compare=False)

    def elapsed(self) -> float:
        """Return the seconds since the meter was opened."""
        return round(time.perf_counter() - self.began, 4)

    def add(self, kind: CallKind, name: str, seconds: float) -> None:
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
def timed(kind: CallKind, name: str) -> Iterator[None]:
    """Count the block as one call, without the seconds of timed blocks inside it."""
    inner = [0.0]
    token = _nested.set(inner)
    began = time.perf_counter()
    try:
        yield
    finally:
        _nested.reset(token)
        took(kind, name, time.perf_counter() - began, inside=inner[0])


def took(kind: CallKind, name: str, seconds: float, *, inside: float = 0.0) -> None:
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


class Budget:
    """The limits of a run, where None means unlimited. Safe between threads.

    A call is counted before it is made and given back if it gets no answer. Its tokens are known afterwards, so calls
    in progress at the limit still finish.
    """

    def __init__(
        self, *, max_calls: int | None = None, max_tokens: int | None = None, outer: "Budget | None" = None
    ) -> None:
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.calls = 0
        self.tokens = 0
        self._outer = outer  # the enclosing budget, which is charged as well
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count a call that is about to be made.

        Raises `BudgetError` if it would exceed a limit.
        """
        with self._lock:
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise BudgetError(_spent(self.max_calls, "call"))
            if self.max_tokens is not None and self.tokens >= self.max_tokens:
                raise BudgetError(_spent(self.max_tokens, "token"))
            if self._outer:
                self._outer.take()
            self.calls += 1

    def give_back(self) -> None:
        """Uncount a call that got no answer."""
        with self._lock:
            self.calls -= 1
        if self._outer:
            self._outer.give_back()

    def add_tokens(self, tokens: int) -> None:
        """Count the prompt and completion tokens of a call."""
        with self._lock:
            self.tokens += tokens
        if self._outer:
            self._outer.add_tokens(tokens)


_budget: ContextVar[Budget | None] = ContextVar("hgmem_budget", default=None)


@contextmanager
def spending(*, max_calls: int | None = None, max_tokens: int | None = None) -> Iterator[Budget]:
    """Yield a budget for everything inside the block. An enclosing budget is charged too."""
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, outer=_budget.get())
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def current_budget() -> Budget:
    """Return the budget of the current context, or an unlimited one."""
    return _budget.get() or Budget()


def _spent(most: int, unit: str) -> str:
    return f"the budget of {counted(most, unit)} is used up"
