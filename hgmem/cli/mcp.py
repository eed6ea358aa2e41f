"""`mcp`: hgmem as a server of tools for assistants."""

from typing import Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, connected
from hgmem.cli.output import note
from hgmem.errors import UsageError

HOST, PORT = "127.0.0.1", 8765

app = typer.Typer(rich_markup_mode=None)


@app.command()
def mcp(
    context: typer.Context,
    corpus: Annotated[
        str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus that is asked where a call names none.")
    ] = DEFAULT_CORPUS,
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Make memories of this owner, and see only those and everybody's. Default: make everybody's, see all.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Offer more tools: corpora, evidence, facts, and with --write remember.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Allow continuing memories of others, and with --full appending to conversations."
        ),
    ] = False,
    seconds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Return an unfinished question, to be continued, after N seconds.")
    ] = 50,
    http: Annotated[bool, typer.Option("--http", help="Serve by streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="With --http: the address of this machine to listen on.")
    ] = HOST,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="With --http: the port.")] = PORT,
) -> None:
    """Serve tools to an assistant by the Model Context Protocol.

    The assistant's program starts this command and talks to it over stdin and stdout. With --http it serves the
    programs of this machine, and asks nobody for a key.
    """
    if not http and (host, port) != (HOST, PORT):
        raise typer.BadParameter("is for --http: pass that too", param_hint="--port" if host == HOST else "--host")
    try:
        from hgmem.mcp import listening, make_server, serve_http, serve_stdio
    except ImportError as missing:
        raise UsageError(str(missing)) from missing
    opened = listening(host, port) if http else None
    with connected(context, corpus, owner=owner) as client:
        server = make_server(client, full=full, write=write, seconds=seconds)
        if opened is None:
            serve_stdio(server)
        else:
            address, number = opened.getsockname()[:2]
            note(f"serving at http://{f'[{address}]' if ':' in address else address}:{number}/mcp; Ctrl-C ends it")
            serve_http(server, opened)
