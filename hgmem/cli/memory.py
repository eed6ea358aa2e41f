"""`memory`: list, show and export memories."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hgmem.cli import retention
from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, OwnerOption, connected
from hgmem.cli.lists import memories
from hgmem.cli.output import plain, print_json
from hgmem.cli.render import ancestry, stored
from hgmem.cli.shown import show
from hgmem.text.atomic_files import replacing
from hgmem.values import as_json as shape

app = typer.Typer(rich_markup_mode=None)
memory = typer.Typer(
    name="memory", no_args_is_help=True, rich_markup_mode=None, help="List, inspect, export and delete memories."
)
app.add_typer(memory)
memory.add_typer(retention.app)


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
    if as_json:
        print_json([asdict(one) for one in found])
    elif found:
        show(memories(found))
    else:
        plain(f"corpus {corpus!r} has no memories yet: create one with `hgmem ask`")


@memory.command("show")
def show_(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="MEMORY", help="Uid of the memory, from `ask` or `memory list`.")],
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
    if as_json:
        print_json(shape.memory(found))
    else:
        show(*stored(found, system=system))


@memory.command("export")
def export_(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="MEMORY", help="Uid of the memory, from `ask` or `memory list`.")],
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="HTML file to write, such as memory.html.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
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
    if as_json:
        print_json(shape.lineage(found))
    else:
        show(ancestry(found))
