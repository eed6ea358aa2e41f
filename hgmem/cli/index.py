"""`index`, `append`, `build`: add documents and messages to a corpus, and make what a system needs of it."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import (
    DEFAULT_CORPUS,
    FAILED,
    CorpusOption,
    DryRunOption,
    JsonOption,
    YesOption,
    connected,
    elapsed,
)
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line
from hgmem.cli.planned import confirm_calls, with_work_left
from hgmem.cli.progress import progress
from hgmem.cli.render import print_result
from hgmem.errors import DocumentError
from hgmem.sources.files.items import SUFFIXES
from hgmem.text.language import counted
from hgmem.values.arguments import AppendOptions, BuildOptions, IndexOptions
from hgmem.values.conversations import Conversation

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.values.reports import AppendReport, BuildPlan, BuildReport, IndexPlan, IndexReport

NAMED = 100  # skipped files and records that are listed by name

app = typer.Typer(rich_markup_mode=None)

FieldOption = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=FIELD", help="Field of messages in JSON, such as speaker=from; repeatable."),
]


@app.command()
@options(IndexOptions)
def index(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH…", help=f"Files and folders: {' '.join(SUFFIXES)}.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    conversations: Annotated[bool, typer.Option("--conversations", help="The files are conversations.")] = False,
    field: FieldOption = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry failed chunks; takes no PATH.")] = False,
    no_graph: Annotated[
        bool, typer.Option("--no-graph", help="Embed chunks only: no entities, no relations, no model call.")
    ] = False,
    *,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    **chosen: Any,
) -> None:
    """Index documents into a corpus: chunks, entities, relations.

    Unchanged documents are skipped, so rerun the same command to resume. JSON records need their text in the field
    "text", or in that of HGMEM_TEXT_FIELD. PDF, HTML and Word documents need: pip install 'hgmem[documents]'. Unusable
    files are listed and skipped. With --no-graph, systems that need chunks alone can answer; the same command without
    it adds the graph later. With --stages, a run that was killed resumes from that folder, which pandas, DuckDB and
    Spark can read too: pip install 'hgmem[stages]'. Exits 1 if files were skipped or chunks remain failed.
    """
    _check(bool(paths), retry_failed=retry_failed, no_graph=no_graph, fields=bool(field) and not conversations)
    _check_stages(chosen, other=retry_failed or no_graph)
    with connected(context, corpus) as client:
        items: list[Any] = list(paths or ())
        if conversations and paths:
            items = client.load_conversations(paths, fields=named_fields(field))
        plans = client.plan_retry if retry_failed else partial(client.plan, items, graph=not no_graph)
        if dry_run:
            plan = plans()
            print_result(plan, _planned(plan), as_json=as_json)
            return
        if not (no_graph or (yes and chosen.get("ray"))):  # a plan reads everything here
            _confirm_cost(client, plans, most=chosen.get("max_calls"), yes=yes)
        add = client.retry_failed if retry_failed else partial(client.add, items, graph=not no_graph)
        with progress() as report, with_work_left(lambda: counted(plans().chunks, "chunk")), _printing(chosen):
            done = add(report=report, **chosen)
        failed = client.status().failed if done.documents or done.unchanged else done.failed
    seconds = elapsed(context)
    _note_changes(done, corpus)
    _note_failures(done, failed)
    value = {"corpus": corpus, **asdict(done), "failed_in_corpus": failed, "seconds": seconds}
    print_result(value, summary(done, seconds), as_json=as_json)
    if done.skipped or failed:
        raise typer.Exit(FAILED)


@app.command()
@options(AppendOptions)
def append(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines or a log; - reads standard input.")],
    conversation: Annotated[str, typer.Option("--conversation", metavar="ID", help="The conversation.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title of a new conversation.")] = "",
    field: FieldOption = None,
    *,
    as_json: JsonOption = False,
    **chosen: Any,
) -> None:
    """Append messages to a conversation, which is created if it is new.

    JSON Lines have an object a line with speaker, text, and perhaps time and id. A log has lines such as
    "[2023-02-04 19:12] Ann: Hello." The messages can be asked about at once. Without --graph, no model is called. A
    message whose id the conversation has is skipped, so the command can be repeated where messages have ids. Exits 1 if
    chunks failed.
    """
    from hgmem.client.intake import messages_in

    name = "standard input" if str(file) == "-" else str(file)
    messages = messages_in(_text(file), name=name, conversation=conversation, fields=named_fields(field))
    with connected(context, corpus) as client, progress() as report:
        talk = Conversation(id=conversation, title=title)
        done = client.append(talk, messages, report=report, **chosen)
    seconds = elapsed(context)
    _note_joined(done.joined, corpus)
    note(*map(one_line, done.errors))
    value = {"corpus": corpus, "conversation": conversation, **asdict(done), "seconds": seconds}
    print_result(value, _append_summary(done, conversation, seconds), as_json=as_json)
    if done.failed:
        raise typer.Exit(FAILED)


@app.command()
@options(BuildOptions)
def build(
    context: typer.Context,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A build or a system, see `hgmem systems`.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    *,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    **chosen: Any,
) -> None:
    """Make what a system needs of a corpus before it can answer.

    Only what has changed since is made, so rerun the same command to resume. Without --recipe and --set, a build is
    made anew with the options of the last run. Exits 1 if parts of it failed.
    """
    with connected(context, corpus) as client:
        plans = partial(client.plan_build, system, **chosen)
        if dry_run:
            _print_build_plan(plans(), as_json=as_json)
            return
        plan = plans()
        if plan.calls:
            note(_planned_build(plan))
            confirm_calls(plan.calls, above=client.settings.confirm_calls, most=chosen.get("max_calls"), yes=yes)
        with progress() as report, with_work_left(lambda: f"at most {counted(plans().units, 'unit')}"):
            done = client.build(system, report=report, **chosen)
    seconds = elapsed(context)
    note(*map(one_line, done.errors))
    if done.failed:
        units = counted(done.failed, "unit")
        note(f"{units} failed: retry with `hgmem build {system} --corpus {corpus} --retry-failed`")
    value = {"corpus": corpus, **asdict(done), "seconds": seconds}
    print_result(value, _build_summary(done, seconds), as_json=as_json)
    if not done.whole:
        raise typer.Exit(FAILED)


def _check(named: bool, *, retry_failed: bool, no_graph: bool, fields: bool) -> None:
    if fields:
        raise typer.BadParameter("names fields of messages: pass --conversations too", param_hint="--field")
    if named == retry_failed:
        raise typer.BadParameter("pass files or folders, or --retry-failed without any", param_hint="PATH…")
    if no_graph and retry_failed:
        raise typer.BadParameter("cannot be combined with --retry-failed, which extracts", param_hint="--no-graph")


def _printing(chosen: Mapping[str, Any]) -> AbstractContextManager[object]:
    """Return a context in which Ray, which prints what its nodes say, leaves standard output alone."""
    return redirect_stdout(sys.stderr) if chosen.get("ray") else nullcontext()


def _check_stages(chosen: Mapping[str, Any], *, other: bool) -> None:
    if "writers" in chosen and "stages" not in chosen:
        raise typer.BadParameter("needs --stages DIR: pass it too", param_hint="--writers")
    if "stages" in chosen and other:
        raise typer.BadParameter("cannot be combined with --retry-failed or --no-graph", param_hint="--stages")


def named_fields(given: list[str] | None) -> dict[str, str]:
    """Return the names of fields by what they are, from texts such as `speaker=from`."""
    pairs = [one.partition("=") for one in given or ()]
    wrong = [name for name, between, value in pairs if not (name and between and value)]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]!r} names no field: write it like speaker=from", param_hint="--field")
    return {name: value for name, _, value in pairs}


def _note_changes(done: "IndexReport", corpus: str) -> None:
    for name, gone in [(name, gone) for name, gone in done.replaced.items() if gone][:NAMED]:
        messages = counted(gone, "of its messages is", "of its messages are")
        note(one_line(f"replaced conversation {name!r}: {messages} gone; `hgmem append` adds to a conversation"))
    _note_joined(done.joined, corpus)


def _note_joined(joined: int, corpus: str) -> None:
    if joined:
        pairs = counted(joined, "pair")
        note(f"rules joined {pairs} of names: to take this back, `hgmem resolve undo --by rule --corpus {corpus}`")


def _note_failures(done: "IndexReport", failed: int) -> None:
    for skipped in done.skipped[:NAMED]:
        note(one_line(f"skipped {skipped.path}: {skipped.reason}"))
    if len(done.skipped) > NAMED:
        note(f"and {len(done.skipped) - NAMED:,} more were skipped (use --json to list all)")
    note(*map(one_line, done.errors))
    if failed:
        chunks = counted(failed, "chunk of the corpus has", "chunks of the corpus have")
        note(f"{chunks} failed: retry with `hgmem index --retry-failed`")


def summary(done: "IndexReport", seconds: float) -> str:
    """Return one line about what was indexed."""
    replaced = f" ({len(done.replaced)} replaced)" if done.replaced else ""
    parts = [
        f"{counted(done.documents, 'document')} added{replaced}, {done.unchanged} unchanged",
        f"{counted(done.chunks, 'chunk')} done, {done.failed} failed",
        f"{len(done.skipped)} skipped",
    ]
    return f"{'; '.join(parts)} ({seconds:.1f} s)"


def _append_summary(done: "AppendReport", conversation: str, seconds: float) -> str:
    which = f"{'new conversation' if done.created else 'conversation'} {conversation!r}"
    parts = [
        f"{counted(done.messages, 'message')} appended to {which}, {done.known} known",
        f"{counted(done.chunks, 'chunk')} done, {done.failed} failed",
    ]
    return f"{'; '.join(parts)} ({seconds:.1f} s)"


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{str(file)!r}: {error.strerror or error}: correct the path") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{str(file)!r}, byte {error.start}: not UTF-8: save it as UTF-8") from error


def _planned(plan: "IndexPlan") -> str:
    parts = [f"{counted(plan.documents, 'document')} to index, {plan.unchanged:,} unchanged"]
    if plan.calls:
        parts += [
            f"{counted(plan.chunks, 'chunk')}, at most {counted(plan.calls, 'model call')}",
            f"about {plan.prompt_tokens:,} prompt tokens, at most {plan.completion_tokens_at_most:,} reply tokens",
        ]
    else:
        parts.append(f"{counted(plan.chunks, 'chunk')}, no model calls")
    return "; ".join(parts)


def _confirm_cost(client: "HGMem", plans: Callable[[], "IndexPlan"], *, most: int | None, yes: bool) -> None:
    """Print the estimated cost, and ask for confirmation if it is high. Do nothing if the model is free."""
    if not client.extracts_with_language_model:
        return
    with progress():  # which shows that documents are being read
        plan = plans()
    if not plan.calls:
        return
    note(_planned(plan))
    confirm_calls(plan.calls, above=client.settings.confirm_calls, most=most, yes=yes)


def _print_build_plan(plan: "BuildPlan", *, as_json: bool) -> None:
    lines = []
    for stage in (stage for stage in plan.stages if stage.units):
        units = counted(stage.units, "unit") if stage.listed else f"at most {counted(stage.units, 'unit')}"
        calls = f"at most {counted(stage.calls, 'model call')}" if stage.calls else "no model calls"
        lines.append(f"{stage.stage}: {units}, {calls}")
    value = {**asdict(plan), "units": plan.units, "calls": plan.calls, "prompt_tokens": plan.prompt_tokens}
    print_result(value, *lines, _planned_build(plan), as_json=as_json)


def _planned_build(plan: "BuildPlan") -> str:
    exact = all(stage.listed for stage in plan.stages)
    units = f"{'' if exact else 'at most '}{counted(plan.units, 'unit')} to make"
    if not plan.calls:
        return f"{units}, no model calls"
    return (
        f"{units}, at most {counted(plan.calls, 'model call')}, {plan.prompt_tokens:,} prompt tokens and "
        f"{plan.completion_tokens_at_most:,} reply tokens"
    )


def _build_summary(done: "BuildReport", seconds: float) -> str:
    parts = [f"{counted(done.made, 'unit')} made", f"{done.unchanged} unchanged", f"{done.failed} failed"]
    parts += [f"{done.waiting} waiting for these"] if done.waiting else []
    parts += [f"{done.dropped} dropped, as their texts were deleted meanwhile"] if done.dropped else []
    parts += [f"{done.deleted} deleted"] if done.deleted else []
    return f"{done.system}: {', '.join(parts)}; {counted(done.calls, 'model call')} ({seconds:.1f} s)"
