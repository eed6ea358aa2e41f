"""`import`, `export`, `reembed`: corpora from archives and existing graphs, to archives, and with another embedder."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, ForceOption, JsonOption, connected, elapsed
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line
from hgmem.cli.progress import progress
from hgmem.cli.render import print_result
from hgmem.text.language import counted
from hgmem.values.foreign_graph import Adopting, Shape

if TYPE_CHECKING:
    from hgmem.values.reports import AdoptReport, ArchiveReport, CorpusStatus

app = typer.Typer(rich_markup_mode=None)
importing = typer.Typer(
    name="import", no_args_is_help=True, rich_markup_mode=None, help="Import an archive or an existing graph."
)
app.add_typer(importing)


@importing.command()
def lightrag(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="LightRAG working directory.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Import a graph that LightRAG or HGMem's own code wrote, into an empty corpus.

    Everything is checked before the first write; a failed import leaves nothing. Importing the same directory again
    writes nothing.
    """
    with connected(context, corpus) as client:
        with progress() as report:
            written = client.import_lightrag(directory, report=report)
        status = client.status()
    _print_imported(status, elapsed(context), written=written, as_json=as_json)


@importing.command("archive")
def import_archive(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive that `hgmem export` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Import an archive into the corpus of its name, which must be new or empty.

    Everything is checked before the first write; a failed import leaves nothing. Importing the same archive again
    writes nothing.
    """
    with connected(context) as client, progress() as report:
        done = client.import_archive(file, report=report)
    note(*done.notes)
    what = "imported" if done.written else "already imported, nothing was written"
    _print_report(done, what, elapsed(context), as_json=as_json)


@importing.command("neo4j-graphrag")
@options(Adopting, defaults={each.name: each.default for each in fields(Shape)})
def adopt(
    context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, *, as_json: JsonOption = False, **graph: Any
) -> None:
    """Import a graph that neo4j-graphrag wrote, without extracting again.

    The corpus must be new or empty. hgmem never writes to the source graph. Options map other labels, types and
    properties. A failed import leaves nothing. Importing the same graph again writes nothing.
    """
    with connected(context, corpus) as client, progress() as report:
        done = client.adopt(report=report, **graph)
    note(*map(one_line, done.notes))
    _print_imported(done, elapsed(context), written=done.written, as_json=as_json)


@app.command()
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write, such as affair.jsonl.gz.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    without_memories: Annotated[bool, typer.Option("--without-memories", help="Export without memories.")] = False,
    without_embeddings: Annotated[
        bool, typer.Option("--without-embeddings", help="Export without vectors; an import recomputes them.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Export a corpus, with its memories, to one file that another Neo4j can import.

    The file is written atomically. Concurrent changes to the corpus may be missing from it.
    """
    with connected(context, corpus) as client, progress() as report:
        done = client.export(
            file, memories=not without_memories, embeddings=not without_embeddings, force=force, report=report
        )
    note(*done.notes)
    _print_report(done, f"exported to {file}", elapsed(context), as_json=as_json)


@app.command()
def reembed(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(
            metavar="EMBEDDER", help="The new embedder, as in HGMEM_EMBEDDING_MODEL: a name, a path, or openai:NAME."
        ),
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Recompute all vectors of a corpus and its memories with another embedder.

    The corpus cannot be searched or written meanwhile. If interrupted, run the same command again to resume; another
    embedder starts over. Afterwards set HGMEM_EMBEDDING_MODEL to the new embedder.
    """
    with connected(context, corpus) as client, progress() as report:
        made = client.reembed(model, report=report)
    seconds = elapsed(context)
    done = f"{counted(made, 'vector')} computed with {model} ({seconds:.1f} s)"
    line = f"{corpus}: {done if made else f'already embedded with {model}, nothing to do'}"
    value = {"corpus": corpus, "embedding_model": model, "vectors": made, "seconds": seconds}
    print_result(value, line, as_json=as_json)


def _print_imported(held: "CorpusStatus | AdoptReport", seconds: float, *, written: bool, as_json: bool) -> None:
    parts = [counted(held.documents, "document"), counted(held.chunks, "chunk"), f"{held.entities:,} entities"]
    contents = ", ".join([*parts, counted(held.relations, "relation")])
    done = f"imported in {seconds:.1f} s" if written else "already imported, nothing was written"
    value = {"written": written, **asdict(held), "seconds": seconds}
    print_result(value, f"{held.corpus}: {contents}; {done}", as_json=as_json)


def _print_report(done: "ArchiveReport", what: str, seconds: float, *, as_json: bool) -> None:
    parts = [
        counted(done.counts.get("Document", 0), "document"),
        counted(done.counts.get("Chunk", 0), "chunk"),
        f"{done.counts.get('Entity', 0):,} entities",
        counted(done.counts.get("RELATES", 0), "relation"),
        f"{done.counts.get('Memory', 0):,} memories",
    ]
    if built := done.counts.get("Built", 0):
        parts.append(counted(built, "built row"))
    line = f"{done.corpus}: {', '.join(parts)}; {what} ({seconds:.1f} s)"
    print_result({**asdict(done), "seconds": seconds}, line, as_json=as_json)
