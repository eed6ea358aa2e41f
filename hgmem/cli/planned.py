"""Cost estimates before work, their confirmation, and the message when the budget is spent."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from hgmem.cli.front import FAILED
from hgmem.cli.output import note, plain, print_json
from hgmem.cli.progress import progress
from hgmem.errors import BudgetError, UsageError
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.values.reports import AdoptReport, CorpusStatus, IndexPlan


def print_plan(plan: "IndexPlan", *, as_json: bool) -> None:
    """Print a cost estimate as the result."""
    if as_json:
        print_json(asdict(plan))
    else:
        plain(planned(plan))


def planned(plan: "IndexPlan") -> str:
    """Return one line about the estimated cost of indexing."""
    parts = [f"{counted(plan.documents, 'document')} to index, {plan.unchanged:,} unchanged"]
    if plan.calls:
        parts += [
            f"{counted(plan.chunks, 'chunk')}, at most {counted(plan.calls, 'model call')}",
            f"about {plan.prompt_tokens:,} prompt tokens, at most {plan.completion_tokens_at_most:,} reply tokens",
        ]
    else:
        parts.append(f"{counted(plan.chunks, 'chunk')}, no model calls")
    return "; ".join(parts)


def confirm_cost(client: "HGMem", plans: Callable[[], "IndexPlan"], *, most: int | None, yes: bool) -> None:
    """Print the estimated cost, and ask for confirmation if it is high. Do nothing if the model is free."""
    if not client.extracts_with_language_model:
        return
    with progress():  # which shows that documents are being read
        plan = plans()
    if not plan.calls:
        return
    note(planned(plan))
    confirm_calls(plan.calls, above=client.settings.confirm_calls, most=most, yes=yes)


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
    if not typer.confirm(f"Make {number}?", err=True):
        note("nothing was written")
        raise typer.Exit(FAILED)


@contextmanager
def with_work_left(left: Callable[[], str]) -> Iterator[None]:
    """Add to a `BudgetError` raised in the block how much work is `left`."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(f"{error}: finished work is saved, {left()} left; rerun to continue") from error


def contained(held: "CorpusStatus | AdoptReport") -> str:
    """Return the counts as text, such as `1 document, 2 chunks, 3 entities, 4 relations`."""
    parts = [counted(held.documents, "document"), counted(held.chunks, "chunk")]
    return ", ".join([*parts, f"{held.entities:,} entities", counted(held.relations, "relation")])
