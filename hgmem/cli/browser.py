"""`browser`: a memory in Neo4j Browser, with guide and style."""

import sys
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, OwnerOption, connected
from hgmem.cli.output import flush, note, plain
from hgmem.local.state import Home

if TYPE_CHECKING:
    from hgmem.client.inspection import View
    from hgmem.settings import Settings

app = typer.Typer(rich_markup_mode=None)


@app.command()
def browser(
    context: typer.Context,
    uid: Annotated[
        str | None, typer.Argument(metavar="[MEMORY]", help="Uid of the memory. Default: the corpus's newest.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    owner: OwnerOption = None,
    only_print: Annotated[
        bool,
        typer.Option("--print", help="Print the addresses and open nothing; guide and style are served until Ctrl-C."),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option("--browser", metavar="URL", help="Address of Neo4j Browser. Default: from the server."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port that serves guide and style. Default: a free one.")
    ] = 0,
    save_to: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Copy style and favourites to DIR and exit.")
    ] = None,
) -> None:
    """Open Neo4j Browser on a memory: connected, styled, with a guide through each step.

    Guide and style are served on this machine until Ctrl-C. Entities of the corpus get styling labels by type
    (PersonEntity, OrganizationEntity, PlaceEntity, EventEntity), which the style colours.
    """
    if save_to is not None:
        from hgmem.client.inspection import save_browser_files

        for path in save_browser_files(save_to):
            plain(str(path))
        return
    with connected(context, corpus) as client, client.browse(uid, browser=at, port=port, owner=owner) as view:
        try:  # from the first line on: who reads the address may end the command at once
            for line in _where(view, client.settings):
                plain(line)
            flush()
            if not only_print and _has_screen():
                webbrowser.open(view.link)
            note("guide and style are served until Ctrl-C")
            while True:  # an untimed wait can miss a signal that arrives during a request
                time.sleep(0.2)
        except KeyboardInterrupt:
            note("stopped serving")


def _where(view: "View", settings: "Settings") -> list[str]:
    # The password is printed to a terminal only. A log or a pipe gets the place that holds it.
    kept = "that of NEO4J_PASSWORD" if settings.neo4j_uri else f"in {Home.at(settings.data).record}"
    password = view.password if sys.stdout.isatty() else kept
    return [
        f"Browser   {view.link}",
        f"user      {view.username}",
        f"password  {password}",
        f"guide     :play {view.guide}",
        f"style     :style {view.style}",
    ]


def _has_screen() -> bool:
    """Whether a browser with a window would open, not a text browser that would take the terminal."""
    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser
    except webbrowser.Error:
        return False
