"""`mcp`: hgmem as a server of tools for assistants."""

from typing import Annotated, TypeAlias

import typer

from hgmem.cli.front import DEFAULT_CORPUS, connected
from hgmem.cli.options import AccessDaysOption, AccessLogOption
from hgmem.cli.output import note
from hgmem.errors import UsageError

HOST, PORT = "127.0.0.1", 8765

app = typer.Typer(rich_markup_mode=None)


HostOption: TypeAlias = Annotated[
    str, typer.Option("--host", metavar="HOST", help="With --http: the address of this machine to listen on.")
]
PortOption: TypeAlias = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --http: the port.")
]
KeysOption: TypeAlias = Annotated[
    bool, typer.Option("--keys", help="With --http: require a key of `hgmem keys`, whose owner and scopes hold.")
]
AllowHostOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="With --keys: a name of this host, as its proxy's. Repeatable."),
]
WriteOption: TypeAlias = Annotated[
    bool,
    typer.Option("--write", help="Allow continuing memories of others, and with --full appending to conversations."),
]
OwnOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="NAME",
        help="Make memories of this owner, and see only those and everybody's. Default: make everybody's, see all.",
    ),
]
SecondsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--seconds", metavar="N", min=1, help="Return an unfinished question, to be continued, after N seconds."
    ),
]
FullOption: TypeAlias = Annotated[
    bool, typer.Option("--full", help="Offer more tools: corpora, evidence, facts, and with --write remember.")
]


@app.command()
def mcp(
    context: typer.Context,
    corpus: Annotated[
        str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus that is asked where a call names none.")
    ] = DEFAULT_CORPUS,
    owner: OwnOption = None,
    full: FullOption = False,
    write: WriteOption = False,
    seconds: SecondsOption = 50,
    http: Annotated[bool, typer.Option("--http", help="Serve by streamable HTTP instead of stdin and stdout.")] = False,
    keys: KeysOption = False,
    allow_host: AllowHostOption = None,
    access_log: AccessLogOption = None,
    access_days: AccessDaysOption = 30,
    host: HostOption = HOST,
    port: PortOption = PORT,
) -> None:
    """Serve tools to an assistant by the Model Context Protocol.

    The assistant's program starts this command and talks to it over stdin and stdout. With --http it serves the
    programs of this machine, and asks nobody for a key unless --keys is given.
    """
    _check(http=http, keys=keys, owner=owner, allow_host=allow_host, place=(host, port))
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
            server.log = AccessLog(access_log or FOLDER, days=access_days) if keys else None
            address, number = opened.getsockname()[:2]
            note(f"serving at http://{f'[{address}]' if ':' in address else address}:{number}/mcp; Ctrl-C ends it")
            known = KnownKeys(ServiceStore(client)) if keys else None
            serve_http(server, opened, known=known, hosts=allow_host or ())


def _check(*, http: bool, keys: bool, owner: str | None, allow_host: list[str] | None, place: tuple[str, int]) -> None:
    """Refuse options that do not go together."""
    if allow_host and not (keys and http):
        raise typer.BadParameter("needs --http and --keys: pass them too", param_hint="--allow-host")
    if keys and not http:
        raise typer.BadParameter("needs --http: pass that too", param_hint="--keys")
    if keys and owner is not None:
        raise typer.BadParameter("is that of each key: omit it", param_hint="--owner")
    if not http and place != (HOST, PORT):
        raise typer.BadParameter("is for --http: pass that too", param_hint="--port" if place[0] == HOST else "--host")
