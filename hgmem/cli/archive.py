"""`export`, `import archive`, `reembed`: back up a corpus, restore it, change its embedder."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, plain, print_json
from hgmem.cli.progress import progress
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.reports import ArchiveReport

app = typer.Typer(rich_markup_mode=None)


@app.command()
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write, such as affair.jsonl.gz.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    without_memories: Annotated[bool, typer.Option("--without-memories", help="Export without memories.")] = False,
    without_embeddings: Annotated[
        bool, typer.Option("--without-embeddings", help="Export without vectors; an import recomputes them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Export a corpus, with its memories, to one file that another Neo4j can import.

    The file is written atomically. Concurrent changes to the corpus may be missing from it.
    """
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        done = client.export(
            file, memories=not without_memories, embeddings=not without_embeddings, force=force, report=report
        )
    for line in done.notes:
        note(line)
    print_report(done, f"exported to {file}", time.monotonic() - began, as_json=as_json)


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
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        made = client.reembed(model, report=report)
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        print_json({"corpus": corpus, "embedding_model": model, "vectors": made, "seconds": seconds})
    elif made:
        plain(f"{corpus}: {counted(made, 'vector')} computed with {model} ({seconds:.1f} s)")
    else:
        plain(f"{corpus}: already embedded with {model}, nothing to do")


def print_report(done: "ArchiveReport", what: str, seconds: float, *, as_json: bool) -> None:
    """Print the archive's contents and what was done with it."""
    if as_json:
        print_json({**asdict(done), "seconds": round(seconds, 3)})
        return
    parts = [
        counted(done.counts.get("Document", 0), "document"),
        counted(done.counts.get("Chunk", 0), "chunk"),
        f"{done.counts.get('Entity', 0):,} entities",
        counted(done.counts.get("RELATES", 0), "relation"),
        f"{done.counts.get('Memory', 0):,} memories",
    ]
    if built := done.counts.get("Built", 0):
        parts.append(counted(built, "built row"))
    plain(f"{done.corpus}: {', '.join(parts)}; {what} ({seconds:.1f} s)")
