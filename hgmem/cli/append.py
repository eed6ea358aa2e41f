"""`append`: add messages to a conversation."""

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hgmem.cli.front import DEFAULT_CORPUS, FAILED, CorpusOption, JsonOption, connected
from hgmem.cli.index import FieldOption, named_fields, summary
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.progress import progress
from hgmem.errors import DocumentError
from hgmem.values.conversations import Conversation

app = typer.Typer(rich_markup_mode=None)


@app.command()
def append(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines or a log; - reads standard input.")],
    conversation: Annotated[str, typer.Option("--conversation", metavar="ID", help="The conversation.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title of a new conversation.")] = "",
    graph: Annotated[bool, typer.Option("--graph", help="Extract entities and relations too.")] = False,
    field: FieldOption = None,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N model calls.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Append messages to a conversation.

    JSON Lines have an object a line with speaker, text, and perhaps time and id. A log has lines such as
    "[2023-02-04 19:12] Ann: Hello." The messages can be asked about at once. Without --graph, no model is called. A
    message whose id the conversation has is skipped, so the command can be repeated where messages have ids. Exits 1 if
    chunks failed.
    """
    from hgmem.client.intake import messages_in

    began = time.monotonic()
    name = "standard input" if str(file) == "-" else str(file)
    said = messages_in(_text(file), name=name, conversation=conversation, fields=named_fields(field))
    with connected(context, corpus) as client, progress() as report:
        talk = Conversation(id=conversation, title=title)
        done = client.append(talk, said, graph=graph, report=report, max_calls=max_calls)
    seconds = round(time.monotonic() - began, 3)
    for error in done.errors:
        note(one_line(error))
    if as_json:
        print_json({"corpus": corpus, "conversation": conversation, **asdict(done), "seconds": seconds})
    else:
        plain(summary(done, seconds))
    if done.failed:
        raise typer.Exit(FAILED)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{str(file)!r}: {error.strerror or error}: correct the path") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{str(file)!r}, byte {error.start}: not UTF-8: save it as UTF-8") from error
