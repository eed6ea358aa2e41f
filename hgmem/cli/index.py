"""`index` and `import`: documents and ready-made graphs into a corpus."""

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import agree, counted, naming_the_rest, print_plan
from hgmem.cli.progress import progress
from hgmem.load.formats import SUFFIXES

if TYPE_CHECKING:
    from hgmem.corpus.index import IndexReport

NAMED = 100  # skipped things that are named one by one

app = typer.Typer(rich_markup_mode=None)


@app.command()
def index(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH…", help=f"Files and folders of {' '.join(SUFFIXES)}.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Extract what failed before; no PATH is needed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask, however many model calls it takes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done, and what it takes.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many tokens.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Read documents into a corpus: chunks, entities, relations.

    What is there already is not done again, so the same command goes on where it was stopped. JSON records and
    CSV rows have their text in the field "text". PDF, HTML and Word documents need: pip install 'hgmem[documents]'.
    Files that can't be used are named and skipped. The exit code is 1 if there are such, and for as long as any chunk
    of the corpus has failed.
    """
    if bool(paths) == retry_failed:
        raise typer.BadParameter("give files or folders, or --retry-failed without any", param_hint="PATH…")
    began = time.monotonic()
    with connected(context, corpus) as client:
        plans = client.plan_retry if retry_failed else partial(client.plan, paths)
        if dry_run:
            print_plan(plans(), as_json=as_json)
            return
        agree(client, plans, most=max_calls, yes=yes)
        add = client.retry_failed if retry_failed else partial(client.add, paths)
        with progress() as report, naming_the_rest(plans):
            done = add(report=report, max_calls=max_calls, max_tokens=max_tokens)
        failed = client.status().failed if done.documents or done.unchanged else done.failed
    seconds = round(time.monotonic() - began, 3)
    _note_failures(done, failed)
    if as_json:
        print_json({"corpus": corpus, **asdict(done), "failed_in_corpus": failed, "seconds": seconds})
    else:
        plain(summary(done, seconds))
    if done.skipped or failed:
        raise typer.Exit(FAILED)


def _note_failures(done: "IndexReport", failed: int) -> None:
    for skipped in done.skipped[:NAMED]:
        note(one_line(f"skipped {skipped.path}: {skipped.reason}"))
    if len(done.skipped) > NAMED:
        note(f"and {len(done.skipped) - NAMED:,} more were skipped (--json lists all)")
    for error in done.errors:
        note(one_line(error))
    if failed:
        have = "has" if failed == 1 else "have"
        note(f"{counted(failed, 'chunk')} of the corpus {have} failed: `hgmem index --retry-failed` tries again")


def summary(done: "IndexReport", seconds: float) -> str:
    """Return one line about what was indexed."""
    parts = [
        f"{counted(done.documents, 'document')} added, {done.unchanged} unchanged",
        f"{counted(done.chunks, 'chunk')} done, {done.failed} failed",
        f"{len(done.skipped)} skipped",
    ]
    return f"{'; '.join(parts)} ({seconds:.1f} s)"
