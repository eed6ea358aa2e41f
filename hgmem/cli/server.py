"""`up`, `down`, `doctor`: the server, and what is there to work with."""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, JsonOption, settings
from hgmem.cli.output import note, plain, print_json

if TYPE_CHECKING:
    from hgmem.checking.promises import Checkup
    from hgmem.local import Server
    from hgmem.settings import Settings

app = typer.Typer(rich_markup_mode=None)

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
def doctor(
    context: typer.Context,
    corpus: Annotated[
        str | None, typer.Option("--corpus", "-c", metavar="NAME", help="Look through this corpus, as --deep does.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Look through a corpus instead: all that it promises, each page of it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is here and what is missing, each with its remedy.

    The exit code is 1 if something is missing that hgmem can't do without, or if a corpus breaks a promise.
    """
    if deep or corpus is not None:
        examined(context, DEFAULT_CORPUS if corpus is None else corpus, as_json=as_json)
        return
    from hgmem.diagnose import diagnose

    uri, checks = diagnose(settings(context))
    if as_json:
        print_json({"uri": uri, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            plain(check.line)
    if any(check.failed for check in checks):
        raise typer.Exit(FAILED)


def examined(context: typer.Context, corpus: str, *, as_json: bool) -> None:
    """Print which promises a corpus breaks, and what is unfinished; exit with 1 where one is broken."""
    from hgmem.diagnose import diagnose_corpus

    began = time.monotonic()
    found = diagnose_corpus(settings(context), corpus)
    if as_json:
        seconds = round(time.monotonic() - began, 3)
        print_json({"ok": found.ok, **asdict(found), "seconds": seconds})
    else:
        for line in checkup(found, seconds=time.monotonic() - began):
            plain(line)
    if not found.ok:
        raise typer.Exit(FAILED)


def checkup(found: "Checkup", *, seconds: float) -> Iterator[str]:
    """Yield a line on the corpus, then some for each promise that is broken and each note."""
    broken = f"{len(found.findings)} promises are broken" if found.findings else "every promise is kept"
    yield f"corpus {found.corpus}: {broken} ({seconds:.1f} s)"
    for mark, ones in (("broken", found.findings), ("note", found.notes)):
        for one in ones:
            more = ", …" if one.count > len(one.uids) else ""
            yield f"{mark:<8}{one.name} ({one.count:,}): {one.meaning}"
            yield f"        remedy: {one.remedy}"
            yield f"        {', '.join(one.uids)}{more}"
