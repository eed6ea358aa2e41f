"""`up`, `down`, `doctor`: the server, and what is there to work with."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import FAILED, JsonOption, settings
from hgmem.cli.output import note, plain, print_json

if TYPE_CHECKING:
    from hgmem.local import Server
    from hgmem.settings import Settings

app = typer.Typer()

DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Data directory. Default: HGMEM_DATA, else the user's own.")
]


@app.command()
def up(
    context: typer.Context,
    heap: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of its heap, such as 2g.")] = None,
    pagecache: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of its page cache.")] = None,
    data: DataOption = None,
) -> None:
    """Start a Neo4j on this machine, and say where it is.

    Docker runs it where an engine answers, else a Java with the jars that Maven fetches once. It listens on this
    machine alone, with a random password, until `hgmem down`.
    """
    from hgmem import local

    chosen = settings(context)
    found = local.find(chosen, data=data)
    server = local.up(chosen, heap=heap, pagecache=pagecache, data=data, report=note)
    plain(f"Neo4j {server.version} {'was running already' if found and found.pid == server.pid else 'is running'}")
    for line in _where(server, chosen):
        plain(line)


def _where(server: "Server", chosen: "Settings") -> list[str]:
    from hgmem.local.state import Home

    home = Home.at(server.data)
    usual = home == Home.at(type(chosen).model_fields["data"].get_default(call_default_factory=True))
    known = home == Home.at(chosen.data)
    # The password is for the eyes of whoever sits here; a log or a pipe gets the file that only they can read.
    password = server.password.get_secret_value() if sys.stdout.isatty() else f"in {home.record}"
    return [
        f"  Bolt      {server.uri}",
        f"  Browser   {server.browser}",
        f"  user      {server.username}",
        f"  password  {password}",
        f"  data      {server.data}",
        "  stop it   hgmem down" + ("" if usual else f" --data {server.data}"),
        *([] if known else [f"Other commands find it with HGMEM_DATA={server.data}"]),
        *([f"Other commands use NEO4J_URI, which is set to {chosen.neo4j_uri}"] if chosen.neo4j_uri else []),
    ]


@app.command()
def down(context: typer.Context, data: DataOption = None) -> None:
    """Stop the Neo4j that `hgmem up` started; its data stays."""
    from hgmem import local
    from hgmem.local.state import Home

    chosen = settings(context)
    home = Home.at(data or chosen.data)
    stopped = local.down(chosen, data=data)
    plain(f"stopped; its data stays in {home.path}" if stopped else f"nothing to stop: no Neo4j runs on {home.path}")


@app.command()
def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Say what is here and what is missing, each with its remedy.

    The exit code is 1 if something is missing that hgmem can't do without.
    """
    from hgmem.diagnose import diagnose

    uri, checks = diagnose(settings(context))
    if as_json:
        print_json({"uri": uri, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            plain(check.line)
    if any(check.failed for check in checks):
        raise typer.Exit(FAILED)
