"""`status`, `corpora`, `delete`: inspect and delete corpora."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, YesOption, connected
from hgmem.cli.lists import contents, tenants
from hgmem.cli.output import plain
from hgmem.cli.planned import check_terminal, confirm
from hgmem.cli.render import print_result
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.client import HGMem

NAMED = 5  # documents to delete that are listed by name

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, as_json: JsonOption = False) -> None:
    """Show a corpus's contents and failures."""
    with connected(context, corpus) as client:
        counts, documents, roles = client.status(), client.documents(), client.roles
    value = {**asdict(counts), "roles": roles, "document_list": documents}
    print_result(value, *contents(counts, documents, roles), as_json=as_json)


@app.command()
def corpora(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the corpora."""
    with connected(context) as client:
        found = client.corpora()
    none = "no corpora yet: create one with `hgmem index` or `hgmem import`"
    print_result(found, tenants(found) if found else none, as_json=as_json)


@app.command()
def delete(
    context: typer.Context,
    corpus: Annotated[str, typer.Option("--corpus", "-c", metavar="NAME", help="The corpus.")],
    document: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Delete only this document: its id or path (see `hgmem status`), or uid. The path of a file with "
            "several documents, such as a CSV, names all of them. Repeatable.",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete only what this system has built, see `hgmem status`.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Delete a corpus, or documents or a build of it.

    Deleting a corpus deletes its memories; deleting documents deletes what only they support. Memories keep the
    points and quotes that they took from deleted documents: delete those with `hgmem memory delete`.
    """
    if document and system:
        raise typer.BadParameter("cannot be combined with --document: run one command for each", param_hint="--system")
    if not yes:
        check_terminal("nothing was deleted")
    with connected(context, corpus) as client:
        found = client.documents(document=document) if document else []
        what = _documents(client, document, found) if document else _build_or_corpus(client, system)
        if not yes:
            confirm(f"Delete {what}?", otherwise="nothing was deleted")
        documents = [str(row["uid"]) for row in found] if document else None
        client.delete(document=documents, system=system)  # without either, the corpus
    plain(f"deleted {what}")


def _documents(client: "HGMem", names: Sequence[str], found: Sequence[Mapping[str, object]]) -> str:
    titles = {str(row[name]): f" ({row['title']})" for row in found for name in ("uid", "id")}
    which = ", ".join(f"{name}{titles.get(name, '')}" for name in names[:NAMED])
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    if len(found) == 1:
        return f"document {which}{more} of corpus {client.corpus!r}"
    return f"{len(found):,} documents of corpus {client.corpus!r}: {which}{more}"


def _build_or_corpus(client: "HGMem", system: str | None) -> str:
    if system:
        return f"the build {system!r} in corpus {client.corpus!r}"
    held = client.status()
    builds = f", {counted(len(held.builds), 'build')}" if held.builds else ""
    return f"corpus {client.corpus!r} with {held.documents} documents{builds} and {held.memories} memories"
