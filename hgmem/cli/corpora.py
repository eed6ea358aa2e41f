"""`status`, `corpora`, `delete`: what there is, and away with it."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.lists import contents, tenants
from hgmem.cli.output import note, plain, print_json
from hgmem.cli.shown import show
from hgmem.errors import UsageError

if TYPE_CHECKING:
    from hgmem.client import HGMem

NAMED = 5  # documents to delete that are named one by one

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, as_json: JsonOption = False) -> None:
    """Show what a corpus holds, and what failed."""
    with connected(context, corpus) as client:
        counts, documents = client.status(), client.documents()
    if as_json:
        print_json({**asdict(counts), "document_list": documents})
    else:
        show(*contents(counts, documents))


@app.command()
def corpora(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the corpora."""
    with connected(context) as client:
        found = client.corpora()
    if as_json:
        print_json(found)
    elif found:
        show(tenants(found))
    else:
        plain("no corpora yet: `hgmem index` and `hgmem import` make them")


@app.command()
def delete(
    context: typer.Context,
    corpus: Annotated[str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus.")],
    document: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this document: its uid (see `hgmem status`), id or path. Repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Delete a corpus, or documents of it.

    A corpus goes with its memories, documents with what only they support: what others support stays. Memories keep
    the points and quotes that they took from documents: `hgmem memory delete` lets them go.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("nothing was deleted: there is nobody to ask here, pass --yes if you mean it")
    with connected(context, corpus) as client:
        what = _what(client, document or ())
        if not yes and not typer.confirm(f"Delete {what}?", err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
        client.delete(document=document or None)
    plain(f"deleted {what}")


def _what(client: "HGMem", documents: Sequence[str]) -> str:
    if documents:
        titles = {str(row["uid"]): f" ({row['title']})" for row in client.documents()}
        which = ", ".join(f"{name}{titles.get(name, '')}" for name in documents[:NAMED])
        more = f" and {len(documents) - NAMED:,} more" if len(documents) > NAMED else ""
        return f"document{'s' * (len(documents) > 1)} {which}{more} of corpus {client.corpus!r}"
    held = client.status()
    return f"corpus {client.corpus!r} with {held.documents} documents and {held.memories} memories"
