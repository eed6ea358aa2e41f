"""Budgets: limits on requests and tokens of a run, counted as they are spent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hgmem.errors import BudgetError
from hgmem.text.language import counted


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


def current() -> Budget:
    """Return the budget of the current context, or an unlimited one."""
    return _budget.get() or Budget()


def _spent(most: int, unit: str) -> str:
    return f"the budget of {counted(most, unit)} is used up"
