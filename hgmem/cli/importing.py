"""`hgmem import`: pre-built graphs, by the program that wrote them."""

import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.archive import print_report
from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import contained
from hgmem.cli.progress import progress
from hgmem.values.foreign_graph import Adopting, Shape

if TYPE_CHECKING:
    from hgmem.values.reports import AdoptReport

app = typer.Typer(rich_markup_mode=None)
importing = typer.Typer(
    name="import", no_args_is_help=True, rich_markup_mode=None, help="Import an archive or an existing graph."
)
app.add_typer(importing)


@importing.command()
def lightrag(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="LightRAG working directory.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Import a graph that LightRAG or HGMem's own code wrote, into an empty corpus.

    Everything is checked before the first write; a failed import leaves nothing. Importing the same directory again
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
    done = f"imported in {seconds:.1f} s" if written else "already imported, nothing was written"
    plain(f"{corpus}: {contained(status)}; {done}")


@importing.command("archive")
def import_archive(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive that `hgmem export` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Import an archive into the corpus of its name, which must be new or empty.

    Everything is checked before the first write; a failed import leaves nothing. Importing the same archive again
    writes nothing.
    """
    began = time.monotonic()
    with connected(context) as client, progress() as report:
        done = client.import_archive(file, report=report)
    for line in done.notes:
        note(line)
    what = "imported" if done.written else "already imported, nothing was written"
    print_report(done, what, time.monotonic() - began, as_json=as_json)


@importing.command("neo4j-graphrag")
@options(Adopting, defaults={each.name: each.default for each in fields(Shape)})
def adopt(
    context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, *, as_json: JsonOption = False, **graph: Any
) -> None:
    """Import a graph that neo4j-graphrag wrote, without extracting again.

    The corpus must be new or empty. hgmem never writes to the source graph. Options map other labels, types and
    properties. A failed import leaves nothing. Importing the same graph again writes nothing.
    """
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        done = client.adopt(report=report, **graph)
    for line in done.notes:
        note(one_line(line))
    _print_adopted(done, time.monotonic() - began, as_json=as_json)


def _print_adopted(done: "AdoptReport", seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(done), "seconds": round(seconds, 3)})
        return
    what = f"imported in {seconds:.1f} s" if done.written else "already imported, nothing was written"
    plain(f"{done.corpus}: {contained(done)}; {what}")
