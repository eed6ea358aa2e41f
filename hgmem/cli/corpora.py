"""`status`, `corpora`, `delete`: what there is, and away with it."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.lists import contents, tenants
from hgmem.cli.output import note, plain, print_json, show
from hgmem.errors import UsageError

if TYPE_CHECKING:
    from hgmem.client import HGMem

app = typer.Typer()


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
        str | None, typer.Option(metavar="UID", help="Only this document, as `hgmem status` names it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Delete a corpus, or one document.

    A corpus goes with its memories, a document with what only it supports: what others support stays.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("nothing was deleted: there is nobody to ask here, pass --yes if you mean it")
    with connected(context, corpus) as client:
        what = _what(client, document)
        if not yes and not typer.confirm(f"Delete {what}?", err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
        client.delete(document=document)
    plain(f"deleted {what}")


def _what(client: "HGMem", document: str | None) -> str:
    if document is not None:
        titles = {str(row["uid"]): str(row["title"]) for row in client.documents()}
        title = f" ({titles[document]})" if document in titles else ""
        return f"document {document}{title} of corpus {client.corpus!r}"
    held = client.status()
    return f"corpus {client.corpus!r} with {held.documents} documents and {held.memories} memories"
