"""`ask`: a question, answered from a corpus."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli import as_json as shape
from hgmem.cli.front import DEFAULT_CORPUS, JsonOption, connected, verbose
from hgmem.cli.output import print_json
from hgmem.cli.render import answered, remembered, spent
from hgmem.cli.shown import show
from hgmem.errors import UsageError

if TYPE_CHECKING:
    from hgmem.asking import Asking
    from hgmem.client import HGMem
    from hgmem.model import Answer

Question = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUESTION]",
        help="The question; put -- before one that begins with a dash. May be left out with --continue.",
    ),
]
Corpus = Annotated[
    str | None, typer.Option("--corpus", "-c", metavar="NAME", help=f"The corpus. Default: {DEFAULT_CORPUS}.")
]
Steps = Annotated[int | None, typer.Option(metavar="N", help="The most new steps. Default: the recipe's, 3.")]
System = Annotated[str, typer.Option(metavar="NAME", help="How to answer: hgmem, or naive.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How hgmem goes about it: default, paper, code, compact (two calls a step), single (one call a step), "
        "or an ablation: global-only, local-only, no-update, no-merge.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the recipe, such as retrieval.hops=2. Repeatable."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Search only documents whose source, title or metadata KEY is VALUE; * stands for anything. Repeatable.",
    ),
]
Continued = Annotated[
    str | None,
    typer.Option("--continue", metavar="ID", help="Go on with this memory: with a new question, or where it stopped."),
]
AtStep = Annotated[
    int | None,
    typer.Option(metavar="N", help="With --continue: answer from memory as it was after step N; no new step."),
]
MaxCalls = Annotated[int | None, typer.Option(metavar="N", min=1, help="The most requests to a language model.")]
MaxTokens = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Stop when so many tokens are spent on a language model.")
]
ShowMemory = Annotated[bool, typer.Option("--show-memory", help="Show each step and what is remembered.")]

app = typer.Typer(rich_markup_mode=None)


@app.command()
def ask(
    context: typer.Context,
    question: Question = None,
    corpus: Corpus = None,
    steps: Steps = None,
    system: System = "hgmem",
    recipe: Recipe = None,
    set_: Changes = None,
    where: Where = None,
    memory: Continued = None,
    at_step: AtStep = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    show_memory: ShowMemory = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question, with quotes that it rests on.

    The question is investigated in steps; what is learnt is kept in Neo4j as a memory of its own, which
    `hgmem memory show` and Neo4j Browser show, and which --continue goes on with. An answer that there is no
    evidence is an answer: exit code 0.
    """
    if question is None and memory is None:
        raise typer.BadParameter("it is missing: ask something, or --continue a memory", param_hint="QUESTION")
    asking: Asking = {
        "corpus": corpus,
        "system": system,
        "recipe": recipe,
        "settings": changes(set_ or ()),
        "steps": steps,
        "filters": filters(where) if where else None,
        "memory": memory,
        "at_step": at_step,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
    }
    with connected(context, DEFAULT_CORPUS if corpus is None else corpus) as client:
        answer = _answer(client, question or "", asking, quietly=show_memory or as_json)
    if as_json:
        print_json(shape.answer(answer))
        return
    show(
        *(remembered(answer) if show_memory else ()),
        *answered(answer),
        *(spent(answer.usage) if verbose(context) else ()),
    )


def changes(given: list[str] | tuple[str, ...]) -> dict[str, object]:
    """Return what `--set` gives, by name."""
    found: dict[str, object] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"--set {one!r} is no setting: write KEY=VALUE, such as --set retrieval.hops=2")
        found[name.strip()] = value.strip()
    return found


def filters(given: list[str]) -> dict[str, list[str]]:
    """Return what `--where` gives, by name; one that is given again may have either value."""
    found: dict[str, list[str]] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"--where {one!r} chooses nothing: write KEY=VALUE, such as --where source=report.pdf")
        found.setdefault(name.strip(), []).append(value.strip())
    return found


def _answer(client: "HGMem", question: str, asking: "Asking", *, quietly: bool) -> "Answer":
    if sys.stderr is None or not sys.stderr.isatty():
        return client.ask(question, **asking)
    from hgmem.cli.live import watched

    with closing(client.stream(question, **asking)) as events:
        return watched(events, quietly=quietly)
