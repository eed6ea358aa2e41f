"""Meters and budgets: what a piece of work spends in calls, seconds and tokens, and how much of it a run may spend.

`measuring()` opens a meter for the current context, with or without limits, and everything below it reports through
`timed()`. Meters are context variables, so concurrent questions on one client never count each other's calls. Thread
pools pass them on by running work in `contextvars.copy_context()`.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hgmem.errors import BudgetError
from hgmem.text.language import counted
from hgmem.values.arguments import ARGUMENTS, check
from hgmem.values.usage import Usage

CallKind: TypeAlias = Literal["model", "request", "cache", "embedding", "reranking", "neo4j"]
TokenKind: TypeAlias = Literal["prompt", "completion", "cached", "estimated"]
_nested: ContextVar[list[float] | None] = ContextVar("hgmem_nested", default=None)


@dataclass
class Meter:
    """Counters of one piece of work, and its limits, where None means unlimited. Safe between threads.

    `outer` is the enclosing meter, which counts the same. Limited are `taken`, the requests to language models, and
    `paid`, their prompt and completion tokens. A request is counted before it is sent and given back if it gets no
    answer. Its tokens are known afterwards, so requests in progress at the limit still finish.
    """

    outer: "Meter | None" = None
    max_calls: int | None = None
    max_tokens: int | None = None
    taken: int = 0
    paid: int = 0
    calls: dict[CallKind, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    seconds: dict[CallKind, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    tokens: dict[str, dict[TokenKind, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    texts: dict[CallKind, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    began: float = field(default_factory=time.perf_counter, repr=False, compare=False)

    def elapsed(self) -> float:
        """Return the seconds since the meter was opened."""
        return round(time.perf_counter() - self.began, 4)

    def add(self, kind: CallKind, name: str, seconds: float, *, texts: int = 0, inside: float = 0.0) -> None:
        """Count one call, and the texts that it got.

        Its seconds are without those spent `inside` it in calls that are counted themselves.
        """
        with self.lock:
            self.calls[kind][name] += 1
            self.seconds[kind][name] += seconds
            if texts:
                self.texts[kind] += texts
        if self.outer:
            self.outer.add(kind, name, seconds, texts=texts, inside=inside)

    def add_tokens(self, task: str, counts: Mapping[TokenKind, int]) -> None:
        """Count the tokens of one request."""
        with self.lock:
            for kind, number in counts.items():
                self.tokens[task][kind] += number
            self.paid += counts.get("prompt", 0) + counts.get("completion", 0)
        if self.outer:
            self.outer.add_tokens(task, counts)

    def take(self) -> None:
        """Count a request that is about to be sent. Raises `BudgetError` if it would exceed a limit."""
        with self.lock:
            for most, used, unit in ((self.max_calls, self.taken, "call"), (self.max_tokens, self.paid, "token")):
                if most is not None and used >= most:
                    raise BudgetError(f"the budget of {counted(most, unit)} is used up")
            if self.outer:
                self.outer.take()
            self.taken += 1

    def give_back(self) -> None:
        """Uncount a request that got no answer."""
        with self.lock:
            self.taken -= 1
        if self.outer:
            self.outer.give_back()

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
                texts={str(kind): number for kind, number in self.texts.items()},
            )


_meter: ContextVar[Meter | None] = ContextVar("hgmem_meter", default=None)


@contextmanager
def measuring(*, max_calls: int | None = None, max_tokens: int | None = None) -> Iterator[Meter]:
    """Yield a meter for the block. An enclosing meter counts it too, and its limits hold as well."""
    meter = Meter(max_calls=max_calls, max_tokens=max_tokens)
    with measured_by(meter):
        yield meter


@contextmanager
def measured_by(meter: Meter) -> Iterator[None]:
    """Let a meter count the block, which an enclosing meter counts too."""
    meter.outer = _meter.get()
    token = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(token)


def current_meter() -> Meter:
    """Return the meter of the current context, or one of its own without limits."""
    return _meter.get() or Meter()


@contextmanager
def timed(kind: CallKind, name: str, *, texts: int = 0) -> Iterator[None]:
    """Count the block as one call of so many texts, without the seconds of timed blocks inside it."""
    inner = [0.0]
    token = _nested.set(inner)
    began = time.perf_counter()
    try:
        yield
    finally:
        _nested.reset(token)
        took(kind, name, time.perf_counter() - began, inside=inner[0], texts=texts)


def took(kind: CallKind, name: str, seconds: float, *, inside: float = 0.0, texts: int = 0) -> None:
    """Count one call of `seconds`, of which `inside` were spent in calls that are counted themselves.

    It serves where a block can't: calls that count only if answered, and generators.
    """
    around = _nested.get()
    if around is not None:
        around[0] += seconds
    meter = _meter.get()
    if meter is not None:
        meter.add(kind, name, seconds - inside, texts=texts, inside=inside)


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


def limited(*, max_calls: int | None = None, max_tokens: int | None = None) -> AbstractContextManager[object]:
    """Return a context that limits calls and tokens. Without limits, it leaves the caller's budget in place."""
    limits = {"max_calls": max_calls, "max_tokens": max_tokens}
    check(limits, ARGUMENTS)
    return nullcontext() if set(limits.values()) == {None} else measuring(**limits)
