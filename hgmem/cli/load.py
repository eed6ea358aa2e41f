"""`load`: fill a new database from stage folders with Neo4j's importer."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import JsonOption, elapsed, settings
from hgmem.cli.output import note, plain
from hgmem.cli.render import print_result
from hgmem.cli.server import DataOption
from hgmem.errors import UsageError
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.reports import LoadReport

app = typer.Typer(rich_markup_mode=None)


@app.command()
def load(
    context: typer.Context,
    folders: Annotated[
        list[str] | None, typer.Argument(metavar="DIR…", help="Stage folders of `hgmem index --stages`, one a corpus.")
    ] = None,
    data: DataOption = None,
    files: Annotated[
        Path | None,
        typer.Option("--files", metavar="OUT", help="Write the importer's files only, and print its command."),
    ] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Finish what the importer wrote into a server of your own; takes no DIR.")
    ] = False,
    heap: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Heap size, such as 2g. Default: from this machine's RAM.")
    ] = None,
    pagecache: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Page cache size, such as 4g. Default: 512m.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Load stage folders into a new data directory with Neo4j's importer.

    The data directory must be new or empty, and appears when all is done. No model is called. For a server of your own,
    write the files with --files, run the printed command on it, start it, and run `hgmem load --finish`.
    """
    from hgmem.local.machine import sizes

    try:
        from hgmem.client import loading  # loads pyarrow
    except ModuleNotFoundError as error:
        raise UsageError(f"stages need {error.name}: pip install 'hgmem[stages]'") from error

    if bool(folders) == finish or (data and (files or finish)) or (files and finish):
        raise typer.BadParameter("pass stage folders, with --data or --files; or --finish alone", param_hint="DIR…")
    chosen = settings(context)
    if files:
        plain(loading.write_importer_files(folders or (), files, report=note))
        note("then start the server and run `hgmem load --finish`, with NEO4J_URI and NEO4J_PASSWORD set")
        return
    if finish:
        done = loading.finish_load(chosen, report=note)
    else:
        memory = sizes(heap=heap, pagecache=pagecache)
        done = loading.load_stages(chosen, folders or (), data=data, memory=memory, report=note)
        note(f"start it: hgmem up --data {data or chosen.data}")
    print_result(asdict(done), _summary(done, elapsed(context)), as_json=as_json)


def _summary(done: "LoadReport", seconds: float) -> str:
    rows = [counted(done.rows[label], label.lower()) for label in ("Document", "Chunk") if label in done.rows]
    what = f"loaded {', '.join(rows)} into" if rows else "finished"
    return f"{what} {counted(len(done.corpora), 'corpus', 'corpora')}: {', '.join(done.corpora)} ({seconds:.1f} s)"
