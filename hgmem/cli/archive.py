"""`export`, `import archive`, `reembed`: a corpus into a file, out of one, and over to another embedder."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, connected
from hgmem.cli.output import note, plain, print_json
from hgmem.cli.planned import counted
from hgmem.cli.progress import progress

if TYPE_CHECKING:
    from hgmem.model import ArchiveReport

app = typer.Typer(rich_markup_mode=None)


@app.command()
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive, such as affair.jsonl.gz.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    without_memories: Annotated[bool, typer.Option("--without-memories", help="Leave the memories out.")] = False,
    without_embeddings: Annotated[
        bool, typer.Option("--without-embeddings", help="Leave the vectors out: an import makes them again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a corpus, with its memories, into one file that another Neo4j can take.

    The file is there once it is whole, or not at all. What is written to the corpus meanwhile may be missing.
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
        str, typer.Option(metavar="EMBEDDER", help="As HGMEM_EMBEDDING_MODEL: a name, a path, or openai:NAME.")
    ],
    corpus: CorpusOption = DEFAULT_CORPUS,
    as_json: JsonOption = False,
) -> None:
    """Make all vectors of a corpus and its memories again, with another embedder.

    Meanwhile nobody can ask the corpus or write to it. Stopped, the same command goes on; with another embedder it
    begins anew. Afterwards ask with HGMEM_EMBEDDING_MODEL set to the new one.
    """
    began = time.monotonic()
    with connected(context, corpus) as client, progress() as report:
        made = client.reembed(model, report=report)
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        print_json({"corpus": corpus, "embedding_model": model, "vectors": made, "seconds": seconds})
    elif made:
        plain(f"{corpus}: {counted(made, 'vector')} made with {model} ({seconds:.1f} s)")
    else:
        plain(f"{corpus}: embedded with {model}, nothing was left to do")


def print_report(done: "ArchiveReport", what: str, seconds: float, *, as_json: bool) -> None:
    """Print what an archive holds, and what was done with it."""
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
    plain(f"{done.corpus}: {', '.join(parts)}; {what} ({seconds:.1f} s)")
