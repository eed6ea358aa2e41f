"""`browser`: a memory in Neo4j Browser, with guide and style."""

import sys
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, connected
from hgmem.cli.output import flush, note, plain

if TYPE_CHECKING:
    from hgmem.browser.view import View

app = typer.Typer(rich_markup_mode=None)


@app.command()
def browser(
    context: typer.Context,
    uid: Annotated[
        str | None, typer.Argument(metavar="[MEMORY]", help="The memory. Default: the newest of the corpus.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    only_print: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False,
    at: Annotated[
        str | None,
        typer.Option("--browser", metavar="URL", help="Where Neo4j Browser is. Default: as the server says."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port for guide and style. Default: a free one.")] = 0,
    save_to: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Copy style and favourites there instead, and exit.")
    ] = None,
) -> None:
    """Open Neo4j Browser on a memory: connected, in our colours, with a guide that walks through it step by step.

    Guide and style are served on this machine until Ctrl-C. So that a style can tell them apart, entities of the
    corpus get second labels after their types (PersonEntity, OrganizationEntity, PlaceEntity, EventEntity).
    """
    if save_to is not None:
        from hgmem.browser.view import save

        for path in save(save_to):
            plain(str(path))
        return
    with connected(context, corpus) as client, client.browse(uid, browser=at, port=port) as view:
        for line in _said(view):
            plain(line)
        flush()
        if not only_print and _has_screen():
            webbrowser.open(view.link)
        note("guide and style are served until Ctrl-C")
        try:
            while True:  # a wait without end can miss a signal that comes beside a request
                time.sleep(0.2)
        except KeyboardInterrupt:
            note("no longer served")


def _said(view: "View") -> list[str]:
    # The password is for the eyes of whoever sits here, not for a log or a pipe.
    password = view.password if sys.stdout.isatty() else "as `hgmem up`, or NEO4J_PASSWORD, has it"
    return [
        f"Browser   {view.link}",
        f"user      {view.username}",
        f"password  {password}",
        f"guide     :play {view.guide}",
        f"style     :style {view.style}",
    ]


def _has_screen() -> bool:
    """Whether a browser with a window would open; a text browser would take the terminal."""
    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser
    except webbrowser.Error:
        return False
