"""The command line: Typer commands over the client. Here is the root command, with the options before its commands.

Nothing heavy is imported until a command runs, so that `hgmem --help` answers at once.
"""

import atexit
import gc
import os
import signal
import sys
import time
from importlib.abc import MetaPathFinder
from threading import Timer
from typing import Annotated

import typer

from hgmem import __version__
from hgmem.cli.front import RootCommand, quiet
from hgmem.cli.output import plain, use_utf8

EPILOG = (
    "--uri, --username, --database, --verbose and --debug may also follow a command. The password is never an "
    "argument: set NEO4J_PASSWORD as an environment variable, in .env or (as neo4j_password) in hgmem.toml."
)

AGAIN = 0.05  # seconds until an ignored interrupt is sent again

app = typer.Typer(
    name="hgmem",
    cls=RootCommand,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
)


def main() -> None:
    """Run the command line of this process and exit."""
    use_utf8(sys.stdout, sys.stderr)
    for asked_to_end in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(asked_to_end, signal.default_int_handler)  # so that leases are released, as after Ctrl-C
    sys.unraisablehook = send_again
    sys.meta_path.insert(0, Spared())
    atexit.register(_leave_garbage)
    app(prog_name="hgmem")


class Spared(MetaPathFinder):
    """Spares the Neo4j driver the packages that it imports where they are, a third of a command's start, for nothing.

    To everybody else they are there.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse these packages to the driver's own import alone."""
        if name in ("pandas", "pyarrow"):
            driver = sys.modules.get("neo4j._optional_deps")
            if driver and not hasattr(driver, "__all__"):  # it is being imported
                raise ModuleNotFoundError(name)


def _leave_garbage() -> None:
    """Keep the interpreter from searching all that is left for garbage at its end.

    With PyTorch it has to search: its compiler prints all that it finds left as leaked.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def send_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt the command again where Python ignored an interrupt, as in a finalizer of the Neo4j driver."""
    if ignored.exc_type is KeyboardInterrupt:
        again = Timer(AGAIN, os.kill, (os.getpid(), signal.SIGTERM))  # SIGINT is ignored in jobs of the background
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(ignored)


def _version(wanted: bool) -> None:
    if wanted:
        plain(f"hgmem {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    uri: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Neo4j address, such as bolt://host:7687. Default: NEO4J_URI, else the server that `up` started.",
        ),
    ] = None,
    username: Annotated[
        str | None, typer.Option(metavar="NAME", help="Neo4j user. Default: NEO4J_USERNAME, else neo4j.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Neo4j database. Default: NEO4J_DATABASE, else the user's default."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the server, the models and the cost as well.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Ask questions of your documents, with a memory in Neo4j that you can inspect.

    Start with: hgmem up; hgmem index FOLDER; hgmem ask "a question". No API key and no language model are needed.
    """
    context.obj = time.monotonic()  # when the command began
    context.with_resource(quiet(unless=verbose or debug))
