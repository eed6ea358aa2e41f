"""`memory`: what questions left in Neo4j."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hgmem.cli import as_json as shape
from hgmem.cli import retention
from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.lists import memories
from hgmem.cli.output import plain, print_json
from hgmem.cli.render import ancestry, stored
from hgmem.cli.shown import show
from hgmem.outputs import replacing

app = typer.Typer(rich_markup_mode=None)
memory = typer.Typer(
    name="memory", no_args_is_help=True, rich_markup_mode=None, help="Look at stored memories, and away with them."
)
app.add_typer(memory)
memory.add_typer(retention.app)


@memory.command("list")
def list_(context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, as_json: JsonOption = False) -> None:
    """List a corpus's memories, newest first."""
    with connected(context, corpus) as client:
        found = client.memories()
    if as_json:
        print_json([asdict(one) for one in found])
    elif found:
        show(memories(found))
    else:
        plain(f"corpus {corpus!r} has no memories yet: `hgmem ask` makes them")


@memory.command("show")
def show_(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="ID", help="The memory, as `ask` and `memory list` name it.")],
    step: Annotated[
        int | None, typer.Option(metavar="N", help="As it was at the end of this step. Default: the last.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a memory: its steps, its living points, its answers."""
    with connected(context) as client:
        found = client.memory(uid, step=step)
    if as_json:
        print_json(shape.memory(found))
    else:
        show(*stored(found))


@memory.command("export")
def export_(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="ID", help="The memory, as `ask` and `memory list` name it.")],
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="The page, such as memory.html.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a memory into a page that replays it step by step, in any browser, without a network.

    It holds the quotes and the chunks that the memory rests on: whoever has the page can read them.
    """
    with connected(context) as client, replacing(html, force=force) as file:
        file.write(client.replay(uid).encode())
    plain(f"{html}: open it in a browser")


@memory.command()
def lineage(
    context: typer.Context,
    point: Annotated[str, typer.Argument(metavar="POINT", help="The memory point, as `memory show` names it.")],
    as_json: JsonOption = False,
) -> None:
    """Show where a memory point came from.

    The tree has the points that were revised or merged into it, and those that became them.
    """
    with connected(context) as client:
        found = client.lineage(point)
    if as_json:
        print_json(shape.lineage(found))
    else:
        show(ancestry(found))
