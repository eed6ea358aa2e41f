"""Before and after spending: what indexing would take, whether that is meant, and what a spent budget leaves."""

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

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.corpus.adopting import AdoptReport
    from hgmem.corpus.planning import IndexPlan
    from hgmem.model import CorpusStatus


def print_plan(plan: "IndexPlan", *, as_json: bool) -> None:
    """Print a plan as the result."""
    if as_json:
        print_json(asdict(plan))
    else:
        plain(planned(plan))


def planned(plan: "IndexPlan") -> str:
    """Return one line about what indexing would take."""
    parts = [f"{counted(plan.documents, 'document')} to index, {plan.unchanged:,} unchanged"]
    if plan.calls:
        parts += [
            f"{counted(plan.chunks, 'chunk')}, at most {counted(plan.calls, 'model call')}",
            f"about {plan.prompt_tokens:,} tokens of prompts, at most {plan.completion_tokens_at_most:,} of replies",
        ]
    else:
        parts.append(f"{counted(plan.chunks, 'chunk')}, no model calls")
    return "; ".join(parts)


def agree(client: "HGMem", plans: Callable[[], "IndexPlan"], *, most: int | None, yes: bool) -> None:
    """Say what indexing takes, and have it confirmed where that is much; nothing for a model that costs nothing."""
    from hgmem.corpus.extracting import is_language_model

    if not is_language_model(client.model):
        return
    with progress():  # which says that it reads
        plan = plans()
    if not plan.calls:
        return
    note(planned(plan))
    calls = min(plan.calls, most or plan.calls)
    if yes or calls <= client.settings.confirm_calls:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"nothing was written: this takes up to {counted(calls, 'model call')}, and there is nobody to ask here: "
            "pass --yes if you mean it, or fewer with --max-calls"
        )
    if not typer.confirm(f"Make up to {counted(calls, 'model call')}?", err=True):
        note("nothing was written")
        raise typer.Exit(FAILED)


@contextmanager
def naming_the_rest(plans: Callable[[], "IndexPlan"]) -> Iterator[None]:
    """Have a spent budget say what is left."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(
            f"{error}: what was paid for is kept, {counted(plans().chunks, 'chunk')} left, the same goes on"
        ) from error


def contained(held: "CorpusStatus | AdoptReport") -> str:
    """Return such as `1 document, 2 chunks, 3 entities, 4 relations`."""
    parts = [counted(held.documents, "document"), counted(held.chunks, "chunk")]
    return ", ".join([*parts, f"{held.entities:,} entities", counted(held.relations, "relation")])


def counted(number: int, name: str) -> str:
    """Return such as `1 document`, `2 documents`."""
    return f"{number:,} {name}" + ("" if number == 1 else "s")
