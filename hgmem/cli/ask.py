"""`ask`: a question, answered from a corpus."""

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, JsonOption, connected, verbose
from hgmem.cli.options import options
from hgmem.cli.render import answered, print_result, remembered, spent
from hgmem.values.arguments import AskOptions

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.values.records import Answer

Question = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUESTION]",
        help="The question; put -- before a question that starts with a dash. Optional with --continue.",
    ),
]
ShowMemory = Annotated[bool, typer.Option("--show-memory", help="Print each step and the memory points.")]

app = typer.Typer(rich_markup_mode=None)


@app.command()
@options(AskOptions)
def ask(
    context: typer.Context,
    question: Question = None,
    *,
    show_memory: ShowMemory = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Answer a question, with supporting quotes.

    The question is investigated in steps. What is learned is stored in Neo4j as a memory, which `hgmem memory show`
    and Neo4j Browser display and --continue continues. Exits 0 even without evidence.
    """
    if question is None and "memory" not in given:
        raise typer.BadParameter(
            "missing: enter a question, or continue a memory with --continue", param_hint="QUESTION"
        )
    with connected(context, given.get("corpus", DEFAULT_CORPUS)) as client:
        answer = _answer(client, question or "", given, quietly=show_memory or as_json)
    steps = remembered(answer) if show_memory else ()
    cost = spent(answer.usage) if verbose(context) else ()
    print_result(answer, *steps, *answered(answer), *cost, as_json=as_json)


def _answer(client: "HGMem", question: str, options: Mapping[str, Any], *, quietly: bool) -> "Answer":
    if sys.stderr is None or not sys.stderr.isatty():
        return client.ask(question, **options)
    from hgmem.cli.live import show_progress

    with closing(client.stream(question, **options)) as events:
        return show_progress(events, quietly=quietly)
