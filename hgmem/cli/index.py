"""`index` and `import`: documents and ready-made graphs into a corpus."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.progress import progress

if TYPE_CHECKING:
    from hgmem.corpus.index import IndexReport

NAMED = 100  # skipped things that are named one by one

app = typer.Typer()
importing = typer.Typer(name="import", no_args_is_help=True, rich_markup_mode=None, help="Import a ready-made graph.")
app.add_typer(importing)


@app.command()
def index(
    context: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH…", help="Files and folders of .txt, .md, .json and .jsonl.")
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Read documents into a corpus: chunks, entities, relations.

    What is there already is not done again, so the same command goes on where it was stopped. JSON records have
    their text in the field "text". Files that can't be used are named and skipped, and the exit code is then 1.
    """
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        done = client.add(paths, report=report)
    seconds = round(time.monotonic() - began, 3)
    for skipped in done.skipped[:NAMED]:
        note(one_line(f"skipped {skipped.path}: {skipped.reason}"))
    if len(done.skipped) > NAMED:
        note(f"and {len(done.skipped) - NAMED:,} more were skipped (--json lists all)")
    for error in done.errors:
        note(one_line(error))
    if as_json:
        print_json({"corpus": corpus, **asdict(done), "seconds": seconds})
    else:
        plain(summary(done, seconds))
    if done.skipped or done.failed:
        raise typer.Exit(FAILED)


def summary(done: "IndexReport", seconds: float) -> str:
    """Return one line about what was indexed."""
    parts = [
        f"{counted(done.documents, 'document')} added, {done.unchanged} unchanged",
        f"{counted(done.chunks, 'chunk')} done, {done.failed} failed",
        f"{len(done.skipped)} skipped",
    ]
    return f"{'; '.join(parts)} ({seconds:.1f} s)"


def counted(number: int, name: str) -> str:
    """Return such as `1 document`, `2 documents`."""
    return f"{number:,} {name}" + ("" if number == 1 else "s")


@importing.command()
def lightrag(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="LightRAG's working directory.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Import what LightRAG or HGMem's own code wrote, into a corpus that is empty.

    Everything is checked before the first write; an import that fails leaves nothing. The same directory again
    writes nothing.
    """
    began = time.monotonic()
    with connected(context, corpus) as client:
        with progress() as report:
            written = client.import_lightrag(directory, report=report)
        status = client.status()
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        counts: dict[str, Any] = asdict(status)
        print_json({"written": written, **counts, "seconds": seconds})
        return
    what = [
        counted(status.documents, "document"),
        counted(status.chunks, "chunk"),
        f"{status.entities:,} entities",
        counted(status.relations, "relation"),
    ]
    done = f"imported in {seconds:.1f} s" if written else "imported before, nothing was written"
    plain(f"{corpus}: {', '.join(what)}; {done}")
