"""Confirmation of deletions and of many model calls, and the message when the budget is spent."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from hgmem.cli.front import FAILED
from hgmem.cli.output import note
from hgmem.errors import BudgetError, UsageError
from hgmem.text.language import counted


def confirm_calls(calls: int | None, *, above: int, most: int | None, yes: bool, limit: str = "--max-calls") -> None:
    """Ask for confirmation if there may be more than `above` model calls, of which `most` are allowed.

    None calls are an unknown number. `limit` tells where to set `most`.
    """
    calls = most if calls is None else min(calls, most or calls)
    if yes or (calls is not None and calls <= above):
        return
    number = "an unknown number of model calls" if calls is None else f"up to {counted(calls, 'model call')}"
    if not sys.stdin.isatty():
        raise UsageError(
            f"nothing was written: this takes {number}, and there is no terminal to confirm: pass --yes, or limit it "
            f"with {limit}"
        )
    confirm(f"Make {number}?", otherwise="nothing was written")


def check_terminal(otherwise: str, remedy: str = "pass --yes") -> None:
    """Raise `UsageError` if nobody can be asked for confirmation."""
    if not sys.stdin.isatty():
        raise UsageError(f"{otherwise}: no terminal to confirm: {remedy}")


def confirm(question: str, *, otherwise: str) -> None:
    """Ask for confirmation. Without it, say what `otherwise` is the case, and end the command."""
    if not typer.confirm(question, err=True):
        note(otherwise)
        raise typer.Exit(FAILED)


@contextmanager
def with_work_left(left: Callable[[], str]) -> Iterator[None]:
    """Add to a `BudgetError` raised in the block how much work is `left`."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(f"{error}: finished work is saved, {left()} left; rerun to continue") from error
