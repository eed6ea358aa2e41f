"""`adopt`: import a graph that neo4j-graphrag wrote, without extracting again."""

import time
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import contained
from hgmem.cli.progress import progress
from hgmem.values.foreign_graph import Adopting, Shape

if TYPE_CHECKING:
    from hgmem.values.reports import AdoptReport

app = typer.Typer(rich_markup_mode=None)


@app.command()
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
    _print(done, time.monotonic() - began, as_json=as_json)


def _print(done: "AdoptReport", seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(done), "seconds": round(seconds, 3)})
        return
    what = f"imported in {seconds:.1f} s" if done.written else "already imported, nothing was written"
    plain(f"{done.corpus}: {contained(done)}; {what}")
