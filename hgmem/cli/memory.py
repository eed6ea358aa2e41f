"""`memory`: list, show, compare, fork, export, prune and delete memories, and the lineage of a point."""

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, ForceOption, JsonOption, OwnerOption, YesOption, connected
from hgmem.cli.lists import memories
from hgmem.cli.output import plain
from hgmem.cli.planned import check_terminal, confirm
from hgmem.cli.render import ancestry, print_result, stored
from hgmem.errors import UsageError
from hgmem.text.atomic_files import replacing
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.reports import Pruned

MemoryArgument = Annotated[
    str, typer.Argument(metavar="MEMORY", help="Uid of the memory, from `ask` or `memory list`.")
]
OwnOption = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Delete only this owner's own memories, not everybody's.")
]
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

app = typer.Typer(rich_markup_mode=None)
memory = typer.Typer(
    name="memory",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, inspect, compare, fork, export and delete memories.",
)
app.add_typer(memory)


@memory.command("list")
def list_(
    context: typer.Context,
    corpus: CorpusOption = DEFAULT_CORPUS,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a corpus's memories, newest first."""
    with connected(context, corpus) as client:
        found = client.memories(owner=owner)
    none = f"corpus {corpus!r} has no memories yet: create one with `hgmem ask`"
    print_result(found, memories(found) if found else none, as_json=as_json)


@memory.command("show")
def show_(
    context: typer.Context,
    uid: MemoryArgument,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="Show the memory as of the end of step N. Default: the last.")
    ] = None,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a memory: its steps, active points and answers."""
    with connected(context) as client:
        found = client.memory(uid, step=step, owner=owner)
        system = client.system(found.system)
    print_result(found, *stored(found, system=system), as_json=as_json)


@memory.command("export")
def export_(
    context: typer.Context,
    uid: MemoryArgument,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="HTML file to write, such as memory.html.")],
    force: ForceOption = False,
    owner: OwnerOption = None,
) -> None:
    """Export a memory as an HTML page that replays it step by step, offline, in any browser.

    The page contains the quotes and chunks that support the memory: anyone with the page can read them.
    """
    with connected(context) as client, replacing(html, force=force) as file:
        file.write(client.replay(uid, owner=owner).encode())
    plain(f"{html}: open it in a browser")


@memory.command()
def lineage(
    context: typer.Context,
    point: Annotated[str, typer.Argument(metavar="POINT", help="Uid of the memory point, from `memory show`.")],
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the lineage of a memory point.

    The tree lists the points that were revised or merged into it, and the points that it became part of.
    """
    with connected(context) as client:
        found = client.lineage(point, owner=owner)
    print_result(found, ancestry(found), as_json=as_json)


@memory.command()
def diff(
    context: typer.Context,
    uid: MemoryArgument,
    other: Annotated[
        str | None, typer.Argument(metavar="OTHER", help="Uid of the memory to compare it with. Default: itself.")
    ] = None,
    step: Annotated[int | None, typer.Option(metavar="N", help="Step of MEMORY to compare. Default: the last.")] = None,
    other_step: Annotated[
        int | None, typer.Option(metavar="N", help="Step of OTHER to compare. Default: the last.")
    ] = None,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how memory OTHER differs from MEMORY, or how MEMORY changed after a step.

    Points are the same where they say the same of the same entities. Lines with + are of OTHER alone, lines with - of
    MEMORY alone, and ~ is a point that became another one.
    """
    from hgmem.cli.differences import compared

    with connected(context) as client:
        found = client.diff(uid, other, step=step, other_step=other_step, owner=owner)
    print_result(found, *compared(found), as_json=as_json)


@memory.command()
def fork(
    context: typer.Context,
    uid: MemoryArgument,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="Begin as the memory was at the end of step N. Default: the last.")
    ] = None,
    owner: OwnerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new memory that begins as MEMORY was at the end of a step, and goes its own way from there.

    MEMORY does not change. The fork has its own copy of all that it began with, so either can be deleted.
    """
    with connected(context) as client:
        found = client.fork(uid, step=step, owner=owner)
    made = f"forked memory {found.forked_from} at the end of step {found.forked_at}: {found.uid}"
    print_result(found, made, f"continue it: `hgmem ask --continue {found.uid}`", as_json=as_json)


@memory.command()
def prune(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Minimum time since the last activity: 90m, 12h, 30d, 2w.")
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    keep_answers: Annotated[
        bool, typer.Option("--keep-answers", help="Keep answers and citations; delete steps and points only.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the memories that would be deleted; delete nothing.")
    ] = False,
    owner: OwnOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete memories inactive for longer than AGE.

    The age counts from a memory's creation, last step or last answer, whichever is newest. Memories in use are kept.
    Documents and entities are not changed. If interrupted, run the same command again to resume.
    """
    meant = age(older_than)
    if not (yes or dry_run):
        check_terminal("nothing was pruned", "pass --yes or --dry-run")
    with connected(context, corpus) as client:
        if not yes:
            found = client.prune(older_than=meant, keep_answers=keep_answers, dry_run=True, owner=owner)
            if not dry_run and found.memories:
                confirm(f"Prune {_what(found)}?", otherwise="nothing was pruned")
        if not dry_run:
            found = client.prune(older_than=meant, keep_answers=keep_answers, owner=owner)
    listed = found.memories if dry_run else ()
    print_result(found, *listed, f"{'would prune' if dry_run else 'pruned'} {_what(found)}", as_json=as_json)


@memory.command()
def delete(
    context: typer.Context,
    uid: MemoryArgument,
    owner: OwnOption = None,
    yes: YesOption = False,
) -> None:
    """Delete a memory with its answers."""
    if not yes:
        check_terminal("nothing was deleted")
    with connected(context) as client:
        if not yes:
            found = client.memory(uid, owner=owner)
            what = f"memory {found.uid} of corpus {found.corpus!r} with {len(found.answers)} answers"
            confirm(f"Delete {what}?", otherwise="nothing was deleted")
        client.delete(memory=uid, owner=owner)
    plain(f"deleted memory {uid}")


def _what(found: "Pruned") -> str:
    kept = ", keeping their answers" if found.kept_answers else ""
    return f"{counted(len(found.memories), 'memory', 'memories')} of corpus {found.corpus!r}{kept}"


def age(text: str) -> timedelta:
    """Return an age as users type it: 90m, 12h, 30d, 2w.

    Raises `UsageError`, which describes the format.
    """
    found = re.fullmatch(r"([0-9]+)([mhdw])", text.strip())
    try:
        meant = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta(0)
    except (OverflowError, ValueError):  # more days, or more digits, than a timedelta can hold
        meant = timedelta(0)
    if not meant:
        raise UsageError(f"invalid age {text!r}: use a number with m, h, d or w, such as 90m, 12h, 30d or 2w")
    return meant
