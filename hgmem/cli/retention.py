"""`memory prune` and `memory delete`: delete memories."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.ages import age
from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, plain, print_json
from hgmem.errors import UsageError
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.reports import Pruned

app = typer.Typer(rich_markup_mode=None)
OwnOption = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Delete only this owner's own memories, not everybody's.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@app.command()
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
    if not (yes or dry_run) and not sys.stdin.isatty():
        raise UsageError("nothing was pruned: no terminal to confirm: pass --yes or --dry-run")
    with connected(context, corpus) as client:
        if not yes:
            found = client.prune(older_than=meant, keep_answers=keep_answers, dry_run=True, owner=owner)
            if not dry_run and found.memories and not typer.confirm(f"Prune {_what(found)}?", err=True):
                note("nothing was pruned")
                raise typer.Exit(FAILED)
        if not dry_run:
            found = client.prune(older_than=meant, keep_answers=keep_answers, owner=owner)
    if as_json:
        print_json(asdict(found))
        return
    if dry_run:
        for uid in found.memories:
            plain(uid)
    plain(f"{'would prune' if dry_run else 'pruned'} {_what(found)}")


@app.command()
def delete(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="MEMORY", help="Uid of the memory, from `ask` or `memory list`.")],
    owner: OwnOption = None,
    yes: YesOption = False,
) -> None:
    """Delete a memory with its answers."""
    if not yes and not sys.stdin.isatty():
        raise UsageError("nothing was deleted: no terminal to confirm: pass --yes")
    with connected(context) as client:
        if not yes:
            found = client.memory(uid, owner=owner)
            what = f"memory {found.uid} of corpus {found.corpus!r} with {len(found.answers)} answers"
            if not typer.confirm(f"Delete {what}?", err=True):
                note("nothing was deleted")
                raise typer.Exit(FAILED)
        client.delete(memory=uid, owner=owner)
    plain(f"deleted memory {uid}")


def _what(found: "Pruned") -> str:
    kept = ", keeping their answers" if found.kept_answers else ""
    return f"{counted(len(found.memories), 'memory', 'memories')} of corpus {found.corpus!r}{kept}"
