"""What every command shares: the global options, the client that they lead to, and what an error looks like."""

import logging
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hgmem.cli.output import abandon, flush, note, one_line
from hgmem.cli.parts import COMMANDS, Parts
from hgmem.errors import HGMemError

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.settings import Settings

FLAGS = ("--debug", "--verbose")
VALUED = ("--uri", "--username", "--database")
FAILED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141  # the last two as shells count signals
DEFAULT_CORPUS = "default"

KEPT = {
    "index": "finished chunks are kept, the same command goes on from there",
    "import": "nothing of the import stays",
    "adopt": "nothing of the copy stays",
    "export": "no file was written",
    "reembed": "what was embedded is kept, the same command goes on from there",
    "ask": "no step had ended, so there is nothing to go on from",
    "delete": "the same command goes on with the rest",
    "memory": "what was being pruned is marked, the same command goes on with the rest",
}

CorpusOption = Annotated[str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """The options that stand before the command."""

    uri: str | None = None
    username: str | None = None
    database: str | None = None
    verbose: bool = False
    debug: bool = False


class Front(TyperGroup):
    """The outermost command: takes global options anywhere, and turns what is raised into a line and an exit code."""

    def __init__(self, **described: Any) -> None:
        super().__init__(**{**described, "commands": Parts()})

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in COMMANDS.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left for the commands."""
        return super().parse_args(ctx, hoisted(args))

    def invoke(self, ctx: Any) -> Any:
        """Return what the command returns, or exit as `failure` says."""
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
    """Return the arguments with the global options first; what follows `--` stays where it is."""
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
    """Return the exit code for what was raised, having said on stderr what it was; None for what is Typer's."""
    if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "show"):
        return None
    if isinstance(error, BrokenPipeError):
        abandon(sys.stdout)
        return PIPE_CLOSED
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    memory = getattr(error, "memory", None) if command == "ask" else None
    on = f"whole steps are kept: `hgmem ask --continue {memory}` goes on from there"
    if isinstance(error, KeyboardInterrupt):
        note(f"interrupted: {on if memory else KEPT.get(command, 'nothing was left half done')}")
        return INTERRUPTED
    if isinstance(error, HGMemError):
        note(f"error: {one_line(str(error))}")
        if memory:
            note(on)
    else:
        said = one_line(f"{type(error).__name__}: {error}".rstrip(": "))
        note(f"error: unexpected {said}" + ("" if debug else " (run again with --debug)"))
    return FAILED


@contextmanager
def quiet(chosen: Globals) -> Iterator[None]:
    """Keep what libraries log and warn of for those who look for it; as it was, afterwards."""
    if chosen.verbose or chosen.debug:
        logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
        yield
        return
    before = logging.root.manager.disable
    logging.disable()
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(before)


def settings(context: typer.Context) -> "Settings":
    """Return the settings, global options first."""
    from hgmem.settings import load

    chosen = context.find_object(Globals) or Globals()
    return load(neo4j_uri=chosen.uri, neo4j_username=chosen.username, neo4j_database=chosen.database)


@contextmanager
def connected(context: typer.Context, corpus: str = DEFAULT_CORPUS) -> Iterator["HGMem"]:
    """Yield the client that the global options lead to."""
    from hgmem.client import HGMem

    chosen = context.find_object(Globals) or Globals()
    with HGMem.open(corpus, uri=chosen.uri, username=chosen.username, database=chosen.database) as client:
        if chosen.verbose:
            uri, version, edition = client.server
            note(f"Neo4j {version} {edition} at {uri}; {client.settings.model}; {client.settings.embedding_model}")
        yield client


def verbose(context: typer.Context) -> bool:
    """Whether more than the usual is wanted."""
    return (context.find_object(Globals) or Globals()).verbose
