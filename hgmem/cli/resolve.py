"""`resolve`: decide which entities are the same, by rules, a model or yourself, and take decisions back."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from hgmem.cli.front import (
    DEFAULT_CORPUS,
    CorpusOption,
    DryRunOption,
    ForceOption,
    JsonOption,
    YesOption,
    connected,
    elapsed,
)
from hgmem.cli.lists import table
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line, plain
from hgmem.cli.planned import confirm_calls
from hgmem.cli.progress import progress
from hgmem.cli.render import indented, print_result, show, words
from hgmem.errors import UsageError
from hgmem.text.language import counted
from hgmem.values.arguments import CallLimits

if TYPE_CHECKING:
    from hgmem.values.decisions import Decision, DecisionStatus, OpenPair, ResolutionReport, Seen

MOST = 1_000  # pairs that a review goes through
MOST_TOLD = 20  # decisions that an import replaced or that are void after it

app = typer.Typer(rich_markup_mode=None)
resolve = typer.Typer(name="resolve", rich_markup_mode=None, invoke_without_command=True)
app.add_typer(resolve)

ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever reads the decision.")]
EntityArgument = Annotated[str, typer.Argument(metavar="ENTITY", help="Name or uid of an entity.")]
OtherArgument = Annotated[str, typer.Argument(metavar="ENTITY", help="Name or uid of the other one.")]
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="File that ends in .json or .csv.")]


@resolve.callback()
@options(CallLimits)
def run(
    context: typer.Context,
    corpus: CorpusOption = DEFAULT_CORPUS,
    rules_only: Annotated[bool, typer.Option("--rules-only", help="Call no model.")] = False,
    *,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    **limits: Any,
) -> None:
    """Decide which entities are the same, by rules, a model, or yourself.

    Rules join names that differ in article, punctuation or a title; the model reads lists of entities, from which it
    proposes pairs, and then passages of each pair that is left, a call a pair, the likeliest first. Decided pairs are
    not looked at again, so rerun the same command to resume. Nothing is merged: each decision can be undone. Without a
    language model, `hgmem resolve review` shows you the pairs.
    """
    if context.invoked_subcommand:
        if corpus != DEFAULT_CORPUS:
            raise typer.BadParameter(f"stands after {context.invoked_subcommand!r}", param_hint="--corpus")
        return
    with connected(context, corpus) as client:
        if dry_run:
            plan = client.resolve(dry_run=True)
            print_result(plan, _planned(plan), as_json=as_json)
            return
        if not (rules_only or yes):
            above = client.settings.confirm_calls
            calls = _most_calls(client.resolve(dry_run=True), above)
            confirm_calls(calls, above=above, most=limits.get("max_calls"), yes=yes)
        with progress() as report:
            done = client.resolve(rules_only=rules_only, report=report, **limits)
    seconds = elapsed(context)
    note(*map(one_line, done.errors))
    print_result({**asdict(done), "seconds": seconds}, _done(done, seconds), as_json=as_json)
    if done.left or done.unclear:
        note(f"`hgmem resolve review --corpus {corpus}` shows pairs that are left or unclear")


def _most_calls(plan: "ResolutionReport", above: int) -> int | None:
    """Return the most calls that a run takes, or None: lists may propose any pairs, unless all are within `above`."""
    most = plan.lists + comb(plan.entities, 2)
    return plan.calls if not plan.lists else most if most <= above else None


def _planned(plan: "ResolutionReport") -> str:
    left = f"{counted(plan.left, 'pair')} left, {counted(plan.calls, 'model call')}"
    lists = f", {plan.lists:,} of them for lists of entities, which may propose more pairs" if plan.lists else ""
    return f"{plan.entities:,} entities: rules join {counted(plan.joined, 'pair')}; {left}{lists}"


def _done(done: "ResolutionReport", seconds: float) -> str:
    parts = [
        f"{done.entities:,} entities: rules joined {counted(done.joined, 'pair')}",
        f"the model found {done.same:,} the same, {done.different:,} different, {done.unclear:,} unclear",
        f"{done.left:,} left",
    ]
    mended = [f"{done.mended:,} wrong classes mended"] if done.mended else []
    return f"{'; '.join([*parts, *mended])} ({seconds:.1f} s)"


@resolve.command()
def review(context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS) -> None:
    """Show pairs that may be one, with passages, and decide: y is the same, n is different, s skips, q ends.

    The likeliest come first. Each decision is saved at once. A pair that somebody else has decided meanwhile is
    skipped, and their decision is shown.
    """
    decided, joined = 0, dict[str, str]()
    with connected(context, corpus) as client:
        pairs = client.open_pairs(most=MOST)
        for at, pair in enumerate(pairs, start=1):
            a, b = (joined.get(one.uid, one.uid) for one in (pair.a, pair.b))
            if a == b:  # earlier answers say so
                continue
            show(*_screen(pair, at, len(pairs)))
            answer = _answer()
            if answer == "q":
                break
            if answer == "s":
                continue
            try:
                decide = client.same if answer == "y" else client.different
                note(*_told(decide(pair.a.uid, pair.b.uid, reason="reviewed", replace_others=False)))
            except UsageError as error:  # an entity was deleted, or somebody decided, meanwhile
                note(f"skipped: {error}")
                continue
            decided += 1
            if answer == "y":
                joined |= dict.fromkeys((b, *(one for one, of in joined.items() if of == b)), a)
    plain(f"{decided:,} of {counted(len(pairs), 'pair')} decided")


def _answer() -> str:
    while True:
        try:
            typed = typer.prompt("Same? y, n, s (skip) or q (quit)", err=True).strip().casefold()
        except typer.Abort:  # the input has ended
            return "q"
        if typed in ("y", "yes", "n", "no", "s", "skip", "q", "quit"):
            return str(typed[0])


def _screen(pair: "OpenPair", at: int, total: int) -> Iterator[RenderableType]:
    yield ""
    yield words((f"{at} of {total}: {pair.a.name} – {pair.b.name}", "bold"), f" ({pair.why})")
    for one in (pair.a, pair.b):
        yield from _entity(one)


def _entity(one: "Seen") -> Iterator[RenderableType]:
    yield words((one.name, "bold"), f" ({one.type})" if one.type else "")
    if one.description:
        yield indented(one.description, 2)
    for text in one.passages.values():
        yield indented(f"“{text}”", 4)


@resolve.command("list")
def list_(context: typer.Context, corpus: CorpusOption = DEFAULT_CORPUS, as_json: JsonOption = False) -> None:
    """List all decisions: a person's first, then those of rules, then the model's.

    A void one contradicts decisions that prevail; one sleeps while an entity of it is not in the corpus.
    """
    with connected(context, corpus) as client:
        found = client.decisions()
    none = f"no decisions on entities of corpus {corpus!r} yet"
    print_result(found, _decisions(found) if found else none, as_json=as_json)


def _decisions(found: "Sequence[DecisionStatus]") -> RenderableType:
    rows = [
        (one.decision.uid, one.state, one.decision.by, one.decision.name_a, one.decision.kind, one.decision.name_b,
         one.why or one.decision.reason)
        for one in found
    ]  # fmt: skip
    return table(("decision", "state", "by", "entity", "is", "entity", "why"), rows)


@resolve.command("same", help="Decide that two entities are the same.")
@resolve.command("different", help="Decide that two entities are different, whatever rules and the model say.")
def _decide(
    context: typer.Context,
    a: EntityArgument,
    b: OtherArgument,
    corpus: CorpusOption = DEFAULT_CORPUS,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
) -> None:
    with connected(context, corpus) as client:
        done = (client.same if context.info_name == "same" else client.different)(a, b, reason=reason)
    print_result(done, *_told(done), as_json=as_json)


def _told(done: "DecisionStatus") -> Iterator[str]:
    one = done.decision
    yield one_line(f"{one.name_a!r} and {one.name_b!r}: {one.kind} ({one.uid})")
    if done.replaced:
        yield one_line(f"before, {done.replaced}: replaced")
    if done.why:
        said = f"void: {done.why}" if done.state == "void" else done.why
        yield one_line(f"{said}: undo one of them with `hgmem resolve undo`")


@resolve.command()
def undo(
    context: typer.Context,
    named: Annotated[
        list[str] | None, typer.Argument(metavar="DECISION…", help="Uids of decisions, or two entities.")
    ] = None,
    corpus: CorpusOption = DEFAULT_CORPUS,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Only those of: person, rule, model. Alone: all of these.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take decisions back.

    What a rule or the model decided stays as an open decision, so that it is not decided again; `hgmem resolve undo`
    of that one deletes it.
    """
    with connected(context, corpus) as client:
        done = client.undo(*named or (), by=by)  # type: ignore[arg-type]  # checked there
    none = f"corpus {corpus!r} has no decision by a {by} left to undo"
    each = [one_line(_named(one)) for one in done] if named else []
    print_result(done, *each, f"{counted(len(done), 'decision')} undone" if done else none, as_json=as_json)


@resolve.command()
def export(
    context: typer.Context, file: FileArgument, corpus: CorpusOption = DEFAULT_CORPUS, force: ForceOption = False
) -> None:
    """Write decisions to a file, with names instead of uids, but for those on entities that the corpus lacks now."""
    with connected(context, corpus) as client:
        number = client.export_decisions(file, force=force)
    plain(f"{counted(number, 'decision')} exported to {file}")


@resolve.command("import")
def import_(context: typer.Context, file: FileArgument, corpus: CorpusOption = DEFAULT_CORPUS) -> None:
    """Read decisions from a file: all, or none if the corpus lacks an entity.

    A CSV file has the columns a, b and kind (same, different or open), and may have the others of an export.
    """
    with connected(context, corpus) as client:
        earlier = {one.decision.uid: one.decision for one in client.decisions()}
        done = client.import_decisions(file)
        void = [one for one in client.decisions() if one.state == "void"]
    plain(f"{counted(len(done), 'decision')} imported from {file}")
    replaced = [one for one in done if one.uid in earlier and earlier[one.uid].kind != one.kind]
    told = [f"before, {_named(earlier[one.uid])}: replaced" for one in replaced]
    told += [f"void: {_named(one.decision)}: {one.why}" for one in void]
    note(*map(one_line, told[:MOST_TOLD]))
    if told[MOST_TOLD:]:
        note(f"{len(replaced):,} replaced, {len(void):,} void in all: see `hgmem resolve list --corpus {corpus}`")


def _named(one: "Decision") -> str:
    return f"{one.name_a!r} and {one.name_b!r} {one.kind}, by a {one.by} ({one.uid})"
