"""Shared parts of all commands: the list that they are loaded from, global options, the client, and error output."""

import logging
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from hgmem.cli.output import abandon, flush, note, one_line
from hgmem.errors import CacheWarning, DocumentWarning, HGMemError

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.settings import Settings

FLAGS = ("--debug", "--verbose")
VALUED = ("--uri", "--username", "--database")
FAILED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141  # the last two follow the shell's convention for signals
DEFAULT_CORPUS = "default"

# In the order of `--help`: the module and the first sentence of the command's help.
COMMANDS = {
    "up": ("server", "Start Neo4j on this machine and print its address."),
    "down": ("server", "Stop the Neo4j that `hgmem up` started, keeping its data."),
    "doctor": ("server", "Check the installation and suggest fixes."),
    "load": ("load", "Load stage folders into a new data directory with Neo4j's importer."),
    "index": ("index", "Index documents into a corpus: chunks, entities, relations."),
    "append": ("index", "Append messages to a conversation."),
    "build": ("index", "Make what a system needs of a corpus before it can answer."),
    "resolve": ("resolve", "Decide which entities are the same, by rules, a model, or yourself."),
    "import": ("transfer", "Import an archive or an existing graph."),
    "ask": ("ask", "Answer a question, with supporting quotes."),
    "systems": ("systems", "List the systems that can answer, with their recipes."),
    "memory": ("memory", "List, inspect, compare, fork, export and delete memories."),
    "browser": ("browser", "Open Neo4j Browser on a memory."),
    "mcp": ("mcp", "Serve tools to an assistant by the Model Context Protocol."),
    "status": ("corpora", "Show a corpus's contents and failures."),
    "corpora": ("corpora", "List the corpora."),
    "delete": ("corpora", "Delete a corpus, or documents or a build of it."),
    "export": ("transfer", "Export a corpus, with its memories, to one file."),
    "eval": ("eval", "Measure systems on data sets: run, report, judge."),
    "keys": ("keys", "Make, list and revoke keys of the service."),
    "serve": ("serve", "Serve questions, memories and corpora over HTTP to whoever has a key."),
    "reembed": ("transfer", "Recompute all vectors of a corpus and its memories."),
}

# What is left of an interrupted command.
KEPT = {
    "index": "finished chunks are saved; run the same command again to resume",
    "load": "nothing was loaded",
    "import": "nothing was imported",
    "export": "no file was written",
    "reembed": "finished vectors are saved; run the same command again to resume",
    "build": "finished units are saved; run the same command again to resume",
    "eval": "finished questions are saved; run the same command again to resume",
    "resolve": "decisions are saved; run the same command again to resume",
    "ask": "no step finished; nothing to continue",
    "mcp": "finished steps are saved; continue their memories, which `hgmem memory list` lists",
    "delete": "run the same command again to finish it",
    "memory": "unfinished pruning is marked; run the same command again to finish it",
}

CorpusOption = Annotated[str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus.")]
OwnerOption = Annotated[
    str | None,
    typer.Option(
        "--owner", metavar="NAME", help="See only memories of this owner and everybody's. Default: all memories."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print planned work and cost; write nothing.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


class RootCommand(TyperGroup):
    """The root command: accepts global options anywhere and maps exceptions to a message and an exit code.

    A command is loaded when it is looked up.
    """

    def __init__(self, **described: Any) -> None:
        super().__init__(**{**described, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name: one of ours, else the verbs of a system."""
        if cmd_name not in COMMANDS:
            return import_module("hgmem.cli.systems").group(cmd_name)
        module, _ = COMMANDS[cmd_name]
        return get_group(import_module(f"hgmem.cli.{module}").app).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the commands."""
        return super().parse_args(ctx, hoisted(args))

    def invoke(self, ctx: Any) -> Any:
        """Return the command's result, or exit with the code of `failure`."""
        try:
            done = super().invoke(ctx)
            flush()
        except (Exception, KeyboardInterrupt) as error:
            code = failure(error, command=ctx.invoked_subcommand or "", debug=ctx.params.get("debug", False))
            if code is None:
                raise
            raise typer.Exit(code) from None
        return done


def hoisted(arguments: Iterable[str]) -> list[str]:
    """Return the arguments with the global options first. Arguments after `--` keep their place."""
    front: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            rest += [argument, *waiting]
        elif argument in FLAGS or argument.startswith(tuple(f"{name}=" for name in VALUED)):
            front.append(argument)
        elif argument in VALUED:
            front += [argument, *islice(waiting, 1)]
        else:
            rest.append(argument)
    return [*front, *rest]


def failure(error: BaseException, *, command: str, debug: bool) -> int | None:
    """Print an error to stderr and return its exit code, or None for Typer's own exceptions."""
    if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "show"):
        return None
    if isinstance(error, BrokenPipeError):
        abandon(sys.stdout)
        return PIPE_CLOSED
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    memory = getattr(error, "memory", None) if command == "ask" else None
    on = f"finished steps are saved: continue with `hgmem ask --continue {memory}`"
    if isinstance(error, KeyboardInterrupt):
        note(f"interrupted: {on if memory else KEPT.get(command, 'nothing was left unfinished')}")
        return INTERRUPTED
    if isinstance(error, HGMemError):
        note(f"error: {one_line(str(error))}")
        if memory:
            note(on)
    else:
        text = one_line(f"{type(error).__name__}: {error}".rstrip(": "))
        note(f"error: unexpected {text}" + ("" if debug else " (run again with --debug for the traceback)"))
    return FAILED


def _show_warning(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return what prints a warning about a cache or an input as one line, and others as before."""

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, CacheWarning | DocumentWarning):
            note(f"warning: {one_line(str(message))}")
        else:
            otherwise(message, category, *place)

    return show


@contextmanager
def quiet(*, unless: bool) -> Iterator[None]:
    """Silence logs and warnings of libraries inside the block, unless the user asked for them.

    A cache that can't be used, or what is left out of an input, is one line.
    """
    if unless:
        logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
        yield
        return
    before = logging.root.manager.disable
    logging.disable()
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", CacheWarning)
            warnings.simplefilter("default", DocumentWarning)  # once, though a plan reads the same files before
        warnings.showwarning = _show_warning(warnings.showwarning)
        try:
            yield
        finally:
            logging.disable(before)


def settings(context: typer.Context) -> "Settings":
    """Return the settings. Global options take precedence."""
    from hgmem.settings import load

    return load(**{f"neo4j_{name}": value for name, value in _server(context).items()})


@contextmanager
def connected(context: typer.Context, corpus: str = DEFAULT_CORPUS, **changed: Any) -> Iterator["HGMem"]:
    """Yield a client connected as the global options say, with the settings that `changed` names."""
    from hgmem.client import HGMem

    with HGMem.open(corpus, **_server(context), **changed) as client:
        if verbose(context):
            uri, version, edition = client.server
            served = "".join(f"; {role}: {who}" for role, who in client.roles.items())
            note(f"Neo4j {version} {edition} at {uri}{served}")
        yield client


def verbose(context: typer.Context) -> bool:
    """Whether `--verbose` was given."""
    return bool(context.find_root().params.get("verbose"))


def elapsed(context: typer.Context) -> float:
    """Return the seconds since the command began, to the millisecond."""
    began: float = context.find_root().obj
    return round(time.monotonic() - began, 3)


def _server(context: typer.Context) -> dict[str, str | None]:
    return {name: context.find_root().params.get(name) for name in ("uri", "username", "database")}
