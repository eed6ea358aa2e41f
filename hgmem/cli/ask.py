"""`ask`: a question, answered from a corpus."""

from typing import Annotated

import typer

from hgmem.cli import as_json as shape
from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected, verbose
from hgmem.cli.output import print_json, show
from hgmem.cli.progress import working
from hgmem.cli.render import answered, remembered, spent

app = typer.Typer()


@app.command()
def ask(
    context: typer.Context,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question; put -- before one that begins with a dash.")
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    steps: Annotated[int | None, typer.Option(metavar="N", help="The most steps. Default: 3.")] = None,
    system: Annotated[str, typer.Option(metavar="NAME", help="How to answer: hgmem, or naive.")] = "hgmem",
    show_memory: Annotated[bool, typer.Option("--show-memory", help="Show each step and what is remembered.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question, with quotes that it rests on.

    The question is investigated in steps; what is learnt is kept in Neo4j as a memory of its own, which
    `hgmem memory show` and Neo4j Browser show. An answer that there is no evidence is an answer: exit code 0.
    """
    with connected(context, corpus) as client, working("investigating"):
        answer = client.ask(question, system=system, steps=steps)
    if as_json:
        print_json(shape.answer(answer))
        return
    show(
        *(remembered(answer) if show_memory else ()),
        *answered(answer),
        *(spent(answer.usage) if verbose(context) else ()),
    )
