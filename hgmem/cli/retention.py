"""`memory prune` and `memory delete`: memories that are not wanted any more."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.ages import age
from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, plain, print_json
from hgmem.errors import UsageError

if TYPE_CHECKING:
    from hgmem.model import Pruned

app = typer.Typer(rich_markup_mode=None)
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@app.command()
def prune(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Only memories without activity for so long: 90m, 12h, 30d, 2w.")
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    keep_answers: Annotated[
        bool, typer.Option("--keep-answers", help="Keep the answers with their citations; steps and points go.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which memories would go.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete memories that nobody worked on for long.

    The age counts from the newest of a memory's creation, its steps and its answers. A memory that a run is working
    on stays. The corpus itself is not touched. Stopped half-way, the same command goes on with the rest.
    """
    meant = age(older_than)
    if not (yes or dry_run) and not sys.stdin.isatty():
        raise UsageError("nothing was pruned: there is nobody to ask here, pass --yes if you mean it, or --dry-run")
    with connected(context, corpus) as client:
        if not yes:
            found = client.prune(older_than=meant, keep_answers=keep_answers, dry_run=True)
            if not dry_run and found.memories and not typer.confirm(f"Prune {_what(found)}?", err=True):
                note("nothing was pruned")
                raise typer.Exit(FAILED)
        if not dry_run:
            found = client.prune(older_than=meant, keep_answers=keep_answers)
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
    uid: Annotated[str, typer.Argument(metavar="ID", help="The memory, as `ask` and `memory list` name it.")],
    yes: YesOption = False,
) -> None:
    """Delete a memory with its answers."""
    if not yes and not sys.stdin.isatty():
        raise UsageError("nothing was deleted: there is nobody to ask here, pass --yes if you mean it")
    with connected(context) as client:
        if not yes:
            found = client.memory(uid)
            what = f"memory {found.uid} of corpus {found.corpus!r} with {len(found.answers)} answers"
            if not typer.confirm(f"Delete {what}?", err=True):
                note("nothing was deleted")
                raise typer.Exit(FAILED)
        client.delete(memory=uid)
    plain(f"deleted memory {uid}")


def _what(found: "Pruned") -> str:
    number = len(found.memories)
    kept = ", their answers kept" if found.kept_answers else ""
    return f"{number:,} {'memory' if number == 1 else 'memories'} of corpus {found.corpus!r}{kept}"
