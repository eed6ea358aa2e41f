"""`mcp`: hgmem as a server of tools for assistants."""

from typing import Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, connected
from hgmem.cli.options import AccessDaysOption, AccessLogOption
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
    keys: Annotated[
        bool, typer.Option("--keys", help="With --http: require a key of `hgmem keys`, whose owner and scopes hold.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --keys: a name of this host, such as its proxy's. Repeatable."),
    ] = None,
    access_log: AccessLogOption = None,
    access_days: AccessDaysOption = 30,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="With --http: the address of this machine to listen on.")
    ] = HOST,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="With --http: the port.")] = PORT,
) -> None:
    """Serve tools to an assistant by the Model Context Protocol.

    The assistant's program starts this command and talks to it over stdin and stdout. With --http it serves the
    programs of this machine, and asks nobody for a key unless --keys is given.
    """
    if (keys or allow_host) and not (keys and http):
        raise typer.BadParameter(
            "needs --http and --keys: pass them too", param_hint="--allow-host" if allow_host else "--keys"
        )
    if keys and owner is not None:
        raise typer.BadParameter("is that of each key: omit it", param_hint="--owner")
    if not http and (host, port) != (HOST, PORT):
        raise typer.BadParameter("is for --http: pass that too", param_hint="--port" if host == HOST else "--host")
    try:
        from hgmem.client.access_log import FOLDER, AccessLog
        from hgmem.client.serving import KnownKeys, ServiceStore
        from hgmem.mcp import listening, make_server, serve_http, serve_stdio
    except ImportError as missing:
        raise UsageError(str(missing)) from missing
    opened = listening(host, port, keyed=keys) if http else None
    with connected(context, corpus, owner=owner) as client:
        server = make_server(client, full=full, write=write, seconds=seconds)
        if opened is None:
            serve_stdio(server)
        else:
            address, number = opened.getsockname()[:2]
            note(f"serving at http://{f'[{address}]' if ':' in address else address}:{number}/mcp; Ctrl-C ends it")
            if keys:
                server.log = AccessLog(access_log or FOLDER, days=access_days)
            known = KnownKeys(ServiceStore(client)) if keys else None
            serve_http(server, opened, known=known, hosts=allow_host or ())
