"""`adopt`: a graph that Neo4j's GraphRAG package wrote, taken over without extracting anything again."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import contained
from hgmem.cli.progress import progress

if TYPE_CHECKING:
    from hgmem.corpus.adopting import AdoptReport

app = typer.Typer(rich_markup_mode=None)

# What stands in the help; the defaults themselves are those of hgmem/graphrag/shape.py.
_LABEL = {"metavar": "LABEL", "show_default": False}
_TYPE = {"metavar": "TYPE", "show_default": False}
_PROPERTY = {"metavar": "NAME", "show_default": False}


@app.command()
def adopt(
    context: typer.Context,
    corpus: CorpusOption = DEFAULT_CORPUS,
    from_uri: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Another server, where the graph is. Its password: HGMEM_FROM_PASSWORD."),
    ] = None,
    from_username: Annotated[str | None, typer.Option(metavar="NAME", help="Its user. Default: neo4j.")] = None,
    from_database: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another database, of that server or of the usual one.")
    ] = None,
    document_label: Annotated[str | None, typer.Option(help="Of documents. Default: Document.", **_LABEL)] = None,
    chunk_label: Annotated[str | None, typer.Option(help="Of chunks. Default: Chunk.", **_LABEL)] = None,
    entity_label: Annotated[str | None, typer.Option(help="Of all entities. Default: __Entity__.", **_LABEL)] = None,
    document_relationship: Annotated[
        str | None, typer.Option(help="Between chunk and document. Default: FROM_DOCUMENT.", **_TYPE)
    ] = None,
    next_relationship: Annotated[
        str | None, typer.Option(help="To the next chunk. Default: NEXT_CHUNK.", **_TYPE)
    ] = None,
    entity_relationship: Annotated[
        str | None, typer.Option(help="Between entity and chunk. Default: FROM_CHUNK.", **_TYPE)
    ] = None,
    text_property: Annotated[str | None, typer.Option(help="A chunk's text. Default: text.", **_PROPERTY)] = None,
    index_property: Annotated[
        str | None, typer.Option(help="A chunk's number in its document. Default: index.", **_PROPERTY)
    ] = None,
    id_property: Annotated[str | None, typer.Option(help="A chunk's own id. Default: id.", **_PROPERTY)] = None,
    name_property: Annotated[str | None, typer.Option(help="An entity's name. Default: name.", **_PROPERTY)] = None,
    as_json: JsonOption = False,
) -> None:
    """Take over the graph that Neo4j's GraphRAG package wrote (neo4j-graphrag), without extracting again.

    It is copied into a corpus that is new or empty; theirs is only read. Options name what is called otherwise there.
    An adoption that fails leaves nothing. The same graph again writes nothing.
    """
    named = locals()
    asked: dict[str, Any] = {
        name: value
        for name, value in named.items()
        if name not in ("context", "corpus", "as_json") and value is not None
    }
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        done = client.adopt(report=report, **asked)
    for line in done.notes:
        note(one_line(line))
    _print(done, time.monotonic() - began, as_json=as_json)


def _print(done: "AdoptReport", seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(done), "seconds": round(seconds, 3)})
        return
    what = f"adopted in {seconds:.1f} s" if done.written else "adopted before, nothing was written"
    plain(f"{done.corpus}: {contained(done)}; {what}")
