"""Budgets: how many requests and tokens a run may spend on language models, counted as they are spent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hgmem.errors import BudgetError


class Budget:
    """What a run may spend; None is no limit. Safe between threads.

    A call is taken before it is made and given back if nobody answered it. Tokens are known afterwards, so calls
    that are under way when the limit is reached still end: they are paid for.
    """

    def __init__(
        self, *, max_calls: int | None = None, max_tokens: int | None = None, outer: "Budget | None" = None
    ) -> None:
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.calls = 0
        self.tokens = 0
        self._outer = outer  # which is spent from as well
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count a call that is about to be made; `BudgetError` where it may not be."""
        with self._lock:
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise BudgetError(_spent(self.max_calls, "call"))
            if self.max_tokens is not None and self.tokens >= self.max_tokens:
                raise BudgetError(_spent(self.max_tokens, "token"))
            if self._outer:
                self._outer.take()
            self.calls += 1

    def give_back(self) -> None:
        """Take a call back that nobody answered."""
        with self._lock:
            self.calls -= 1
        if self._outer:
            self._outer.give_back()

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a call, prompt and reply."""
        with self._lock:
            self.tokens += tokens
        if self._outer:
            self._outer.add_tokens(tokens)


_budget: ContextVar[Budget | None] = ContextVar("hgmem_budget", default=None)


@contextmanager
def spending(*, max_calls: int | None = None, max_tokens: int | None = None) -> Iterator[Budget]:
    """Yield the budget that everything inside the block spends from; one around it is spent from too."""
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, outer=_budget.get())
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def current() -> Budget:
    """Return the budget of whoever runs this, without limits where nobody set one."""
    return _budget.get() or Budget()


def _spent(most: int, unit: str) -> str:
    return f"the budget of {most:,} {unit}{'s' * (most != 1)} is spent"
