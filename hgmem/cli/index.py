"""`index`: add documents to a corpus."""

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import confirm_cost, print_plan, with_work_left
from hgmem.cli.progress import progress
from hgmem.sources.files.items import SUFFIXES
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.reports import IndexReport

NAMED = 100  # skipped files and records that are listed by name

app = typer.Typer(rich_markup_mode=None)

FieldOption = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=FIELD", help="Field of messages in JSON, such as speaker=from; repeatable."),
]


@app.command()
def index(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH…", help=f"Files and folders: {' '.join(SUFFIXES)}.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    conversations: Annotated[bool, typer.Option("--conversations", help="The files are conversations.")] = False,
    field: FieldOption = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry failed chunks; takes no PATH.")] = False,
    no_graph: Annotated[
        bool, typer.Option("--no-graph", help="Embed chunks only: no entities, no relations, no model call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print planned work and cost; write nothing.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N tokens.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Index documents into a corpus: chunks, entities, relations.

    Unchanged documents are skipped, so rerun the same command to resume. JSON records and CSV rows need their text in
    the field "text". PDF, HTML and Word documents need: pip install 'hgmem[documents]'. Unusable files are listed and
    skipped. With --no-graph, systems that need chunks alone can answer; the same command without it adds the graph
    later. Exits 1 if files were skipped or chunks remain failed.
    """
    _check(bool(paths), retry_failed=retry_failed, no_graph=no_graph, fields=bool(field) and not conversations)
    began = time.monotonic()
    with connected(context, corpus) as client:
        items: list[Any] = list(paths or ())
        if conversations and paths:
            items = client.load_conversations(paths, fields=named_fields(field))
        plans = client.plan_retry if retry_failed else partial(client.plan, items, graph=not no_graph)
        if dry_run:
            print_plan(plans(), as_json=as_json)
            return
        if not no_graph:
            confirm_cost(client, plans, most=max_calls, yes=yes)
        add = client.retry_failed if retry_failed else partial(client.add, items, graph=not no_graph)
        with progress() as report, with_work_left(plans):
            done = add(report=report, max_calls=max_calls, max_tokens=max_tokens)
        failed = client.status().failed if done.documents or done.unchanged else done.failed
    seconds = round(time.monotonic() - began, 3)
    _note_changes(done)
    _note_failures(done, failed)
    if as_json:
        print_json({"corpus": corpus, **asdict(done), "failed_in_corpus": failed, "seconds": seconds})
    else:
        plain(summary(done, seconds))
    if done.skipped or failed:
        raise typer.Exit(FAILED)


def _check(named: bool, *, retry_failed: bool, no_graph: bool, fields: bool) -> None:
    if fields:
        raise typer.BadParameter("names fields of messages: pass --conversations too", param_hint="--field")
    if named == retry_failed:
        raise typer.BadParameter("pass files or folders, or --retry-failed without any", param_hint="PATH…")
    if no_graph and retry_failed:
        raise typer.BadParameter("cannot be combined with --retry-failed, which extracts", param_hint="--no-graph")


def named_fields(given: list[str] | None) -> dict[str, str]:
    """Return the names of fields by what they are, from texts such as `speaker=from`."""
    pairs = [one.partition("=") for one in given or ()]
    wrong = [name for name, between, value in pairs if not (name and between and value)]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]!r} names no field: write it like speaker=from", param_hint="--field")
    return {name: value for name, _, value in pairs}


def _note_changes(done: "IndexReport") -> None:
    for name, gone in [(name, gone) for name, gone in done.replaced.items() if gone][:NAMED]:
        messages = counted(gone, "of its messages is", "of its messages are")
        note(one_line(f"replaced conversation {name!r}: {messages} gone; `hgmem append` adds to a conversation"))


def _note_failures(done: "IndexReport", failed: int) -> None:
    for skipped in done.skipped[:NAMED]:
        note(one_line(f"skipped {skipped.path}: {skipped.reason}"))
    if len(done.skipped) > NAMED:
        note(f"and {len(done.skipped) - NAMED:,} more were skipped (use --json to list all)")
    for error in done.errors:
        note(one_line(error))
    if failed:
        chunks = counted(failed, "chunk of the corpus has", "chunks of the corpus have")
        note(f"{chunks} failed: retry with `hgmem index --retry-failed`")


def summary(done: "IndexReport", seconds: float) -> str:
    """Return one line about what was indexed."""
    replaced = f" ({len(done.replaced)} replaced)" if done.replaced else ""
    parts = [
        f"{counted(done.documents, 'document')} added{replaced}, {done.unchanged} unchanged",
        f"{counted(done.chunks, 'chunk')} done, {done.failed} failed",
        f"{len(done.skipped)} skipped",
    ]
    return f"{'; '.join(parts)} ({seconds:.1f} s)"
