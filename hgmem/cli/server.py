"""`up`, `down`, `doctor`: run the server and check the installation."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, JsonOption, elapsed, settings
from hgmem.cli.output import note, plain
from hgmem.cli.render import print_result
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.local import Server
    from hgmem.settings import Settings
    from hgmem.values.reports import Checkup

app = typer.Typer(rich_markup_mode=None)

DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data directory. Default: HGMEM_DATA, else a folder of the user."),
]


@app.command()
def up(
    context: typer.Context,
    heap: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Heap size, such as 2g. Default: from this machine's RAM.")
    ] = None,
    pagecache: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Page cache size, such as 4g. Default: from this machine's RAM."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Start Neo4j on this machine and print its address.

    Docker runs it if an engine responds; otherwise Java does, with jars that Maven downloads once. Neo4j listens on
    this machine only, with a random password, until `hgmem down`. In the background, Neo4j then plans the statements of
    a question.
    """
    from hgmem import local
    from hgmem.local.warming import warmed

    chosen = settings(context)
    found = local.find(chosen, data=data)
    with nullcontext() if found else warmed(data or chosen.data):
        server = local.up(chosen, heap=heap, pagecache=pagecache, data=data, report=note)
    plain(f"Neo4j {server.version} {'is already running' if found and found.pid == server.pid else 'is running'}")
    for line in _where(server, chosen):
        plain(line)


def _where(server: "Server", chosen: "Settings") -> list[str]:
    from hgmem.local.state import Home

    home = Home.at(server.data)
    usual = home == Home.at(type(chosen).model_fields["data"].get_default(call_default_factory=True))
    known = home == Home.at(chosen.data)
    # The password is printed to a terminal only. A log or a pipe gets the path of the file that holds it.
    password = server.password.get_secret_value() if sys.stdout.isatty() else f"in {home.record}"
    return [
        f"  Bolt      {server.uri}",
        f"  Browser   {server.browser}",
        f"  user      {server.username}",
        f"  password  {password}",
        f"  data      {server.data}",
        "  stop it   hgmem down" + ("" if usual else f" --data {server.data}"),
        *([] if known else [f"Set HGMEM_DATA={server.data} for other commands to find it"]),
        *([f"Other commands use NEO4J_URI, which is {chosen.neo4j_uri}"] if chosen.neo4j_uri else []),
    ]


@app.command()
def down(context: typer.Context, data: DataOption = None) -> None:
    """Stop the Neo4j that `hgmem up` started, keeping its data."""
    from hgmem import local
    from hgmem.local.state import Home

    chosen = settings(context)
    home = Home.at(data or chosen.data)
    stopped = local.down(chosen, data=data)
    kept, nothing = "stopped; its data is kept in", "nothing to stop: no Neo4j is running on"
    plain(f"{kept if stopped else nothing} {home.path}")


@app.command()
def doctor(
    context: typer.Context,
    corpus: Annotated[
        str | None, typer.Option("--corpus", "-c", metavar="NAME", help="Check this corpus's data, as --deep does.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Check a corpus's data instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and suggest fixes.

    Exits 1 if a required part is missing, or if a corpus has integrity violations.
    """
    if deep or corpus is not None:
        examined(context, DEFAULT_CORPUS if corpus is None else corpus, as_json=as_json)
        return
    from hgmem.client.diagnosis import diagnose

    uri, checks = diagnose(settings(context))
    print_result({"uri": uri, "checks": checks}, *(check.line for check in checks), as_json=as_json)
    if any(check.failed for check in checks):
        raise typer.Exit(FAILED)


def examined(context: typer.Context, corpus: str, *, as_json: bool) -> None:
    """Print a corpus's integrity violations and unfinished work, and exit with 1 if there are violations."""
    from hgmem.client.diagnosis import diagnose_corpus

    found = diagnose_corpus(settings(context), corpus)
    seconds = elapsed(context)
    value = {"ok": found.ok, **asdict(found), "seconds": seconds}
    print_result(value, *checkup(found, seconds=seconds), as_json=as_json)
    if not found.ok:
        raise typer.Exit(FAILED)


def checkup(found: "Checkup", *, seconds: float) -> Iterator[str]:
    """Yield a line on the corpus, then lines for each violation and each note."""
    number = len(found.findings)
    violations = counted(number, "integrity violation") if number else "no integrity violations"
    yield f"corpus {found.corpus}: {violations} ({seconds:.1f} s)"
    for mark, ones in (("error", found.findings), ("note", found.notes)):
        for one in ones:
            if not one.uids:  # a system that failed to check what it has built
                yield f"{mark:<8}{one.name}: {one.meaning}: {one.remedy}"
                continue
            more = ", …" if one.count > len(one.uids) else ""
            yield f"{mark:<8}{one.name} ({one.count:,}): {one.meaning}"
            yield f"        remedy: {one.remedy}"
            yield f"        {', '.join(one.uids)}{more}"
