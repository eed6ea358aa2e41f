"""`ask`: a question, answered from a corpus."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, JsonOption, connected, verbose
from hgmem.cli.output import print_json
from hgmem.cli.render import answered, remembered, show, spent
from hgmem.errors import UsageError
from hgmem.values.inputs import typed_filters

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.values.ask_options import AskOptions
    from hgmem.values.records import Answer

Question = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUESTION]",
        help="The question; put -- before a question that starts with a dash. Optional with --continue.",
    ),
]
Corpus = Annotated[
    str | None, typer.Option("--corpus", "-c", metavar="NAME", help=f"The corpus. Default: {DEFAULT_CORPUS}.")
]
Steps = Annotated[int | None, typer.Option(metavar="N", help="Maximum new steps. Default: the recipe's.")]
System = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="System, see `hgmem systems`. Default: that of the memory, else HGMEM_SYSTEM."),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Preset of the system. Of hgmem: default, paper, code, compact (two calls per step), single (one call per "
            "step), or an ablation: global-only, local-only, no-update, no-merge."
        ),
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Recipe option, such as retrieval.hops=2. Repeatable."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help=(
            "Search only documents whose source, title or metadata KEY equals VALUE; * matches any text. Repeatable."
        ),
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Make a memory that only this owner sees. Default: everybody sees it."),
]
Continued = Annotated[
    str | None,
    typer.Option(
        "--continue",
        metavar="MEMORY",
        help="Continue this memory: with a new question, or from where it was interrupted.",
    ),
]
AtStep = Annotated[
    int | None,
    typer.Option(metavar="N", help="With --continue: answer from memory as of step N, without new steps."),
]
MaxCalls = Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum requests to a language model.")]
MaxTokens = Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after N language model tokens.")]
Learn = Annotated[
    bool, typer.Option("--learn", help="Learn from the question once it is answered, in a system that can.")
]
ShowMemory = Annotated[bool, typer.Option("--show-memory", help="Print each step and the memory points.")]

app = typer.Typer(rich_markup_mode=None)


@app.command()
def ask(
    context: typer.Context,
    question: Question = None,
    corpus: Corpus = None,
    steps: Steps = None,
    system: System = None,
    recipe: Recipe = None,
    set_: Changes = None,
    where: Where = None,
    owner: Owner = None,
    memory: Continued = None,
    at_step: AtStep = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    learn: Learn = False,
    show_memory: ShowMemory = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question, with supporting quotes.

    The question is investigated in steps. What is learned is stored in Neo4j as a memory, which `hgmem memory show`
    and Neo4j Browser display and --continue continues. Exits 0 even without evidence.
    """
    _check_given(question, memory)
    options: AskOptions = {
        "corpus": corpus,
        "system": system,
        "recipe": recipe,
        "settings": changes(set_ or ()),
        "steps": steps,
        "filters": typed_filters(where) if where else None,
        "owner": owner,
        "memory": memory,
        "at_step": at_step,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "learn": learn,
    }
    with connected(context, DEFAULT_CORPUS if corpus is None else corpus) as client:
        answer = _answer(client, question or "", options, quietly=show_memory or as_json)
    if as_json:
        print_json(answer)
        return
    show(
        *(remembered(answer) if show_memory else ()),
        *answered(answer),
        *(spent(answer.usage) if verbose(context) else ()),
    )


def _check_given(question: str | None, memory: str | None) -> None:
    if question is None and memory is None:
        raise typer.BadParameter(
            "missing: enter a question, or continue a memory with --continue", param_hint="QUESTION"
        )


def changes(given: list[str] | tuple[str, ...]) -> dict[str, object]:
    """Return the values of `--set` by name."""
    found: dict[str, object] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"invalid --set {one!r}: use KEY=VALUE, such as --set retrieval.hops=2")
        found[name.strip()] = value.strip()
    return found


def _answer(client: "HGMem", question: str, options: "AskOptions", *, quietly: bool) -> "Answer":
    if sys.stderr is None or not sys.stderr.isatty():
        return client.ask(question, **options)
    from hgmem.cli.live import show_progress

    with closing(client.stream(question, **options)) as events:
        return show_progress(events, quietly=quietly)
