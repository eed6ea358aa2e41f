"""`eval`: measure systems on data sets, and score their answers by a model or by people."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgmem.cli.front import FAILED, DryRunOption, ForceOption, JsonOption, YesOption, connected, settings
from hgmem.cli.options import options
from hgmem.cli.output import note, one_line, plain
from hgmem.cli.planned import confirm_calls
from hgmem.cli.progress import progress
from hgmem.cli.render import print_result
from hgmem.text.language import counted
from hgmem.values.arguments import CallLimits

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.evaluation.results import Row
    from hgmem.evaluation.sheets import Given, Key, Sheet

ResultPaths = Annotated[
    list[Path], typer.Argument(metavar="RESULTS…", help="Output folders of runs, or their results.jsonl.")
]
SheetFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Markdown file of sheets for people: written, or with --scores, the one that was scored."
    ),
]
ScoreFiles = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="JSON file of a judge's scores. Repeatable.")
]
Controls = Annotated[
    bool, typer.Option("--controls", help="Add a right, a wrong and an empty answer, which check the judge.")
]
ScoresOut = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File of the model's scores. Default: beside the results.")
]
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")

app = typer.Typer(rich_markup_mode=None)
eval_ = typer.Typer(
    name="eval", no_args_is_help=True, rich_markup_mode=None, help="Measure systems on data sets: run, report, judge."
)
app.add_typer(eval_)


@eval_.command()
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="TOML file of data sets, systems and limits.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask questions again that failed.")] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the questions of a plan, and record what each prompt showed.

    Each result is saved at once, so rerun the same command to resume. Questions whose plan, data or model has changed
    are asked anew. Answers stay in Neo4j as memories. Exits 1 if questions failed.
    """
    from hgmem.evaluation.plan import read_plan
    from hgmem.evaluation.running import running

    plan = read_plan(file)

    def opens(seed: int | None) -> "AbstractContextManager[HGMem]":
        return connected(context) if seed is None else connected(context, seed=seed)

    with running(plan, opens, retry_failed=retry_failed) as work:
        estimate = work.estimate()
        if dry_run:
            print_result({**asdict(estimate), "calls": estimate.calls}, *estimate.lines, as_json=as_json)
            return
        note(*estimate.lines)
        above, limit = work.settings.confirm_calls, "max_calls in the plan"
        confirm_calls(estimate.calls, above=above, most=plan.max_calls, yes=yes, limit=limit)
        with progress() as report:
            done = work.work(report)
    note(*map(one_line, done.notes))
    asked = f"{counted(done.asked, 'question')} asked, {done.done_before:,} done before, {done.failed:,} failed"
    line = f"{asked}; report them with `hgmem eval report {plan.output}`"
    print_result({**asdict(done), "output": str(plan.output)}, line, as_json=as_json)
    if done.failed:
        note("questions failed: see their errors in the results, and ask them again with --retry-failed")
        raise typer.Exit(FAILED)


@eval_.command()
def report(
    results: ResultPaths,
    compare: Annotated[
        tuple[str, str] | None, typer.Option("--compare", metavar="A B", help="Compare two systems, A minus B.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PNG file to write with the curves; needs matplotlib.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the figures of runs as Markdown tables, with 95 % intervals.

    A, B and the names in tables are the labels of the plan.
    """
    from hgmem.evaluation import presentation
    from hgmem.evaluation import report as figures
    from hgmem.evaluation.results import load

    rows = load(results)
    found = figures.scores(rows)
    compared = figures.compare(rows, *compare) if compare else ()
    if plot is not None:
        presentation.plot(found, plot, force=force)
    value = {"scores": found, "compared": compared}
    print_result(value, presentation.report(found, compared), as_json=as_json)


@eval_.command()
@options(CallLimits)
def judge(
    context: typer.Context,
    results: ResultPaths,
    sheet: SheetFile = None,
    scores: ScoreFiles = None,
    controls: Controls = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the letters.")] = 1,
    out: ScoresOut = None,
    *,
    force: ForceOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    **limits: Any,
) -> None:
    """Score answers under shuffled letters, by HGMEM_MODEL or by people.

    Without --sheet and --scores, the model scores each sheet, and a rerun resumes. For people, write sheets with
    --sheet, then pass the files of their scores with --scores.
    """
    from hgmem.evaluation.judging import judge_of, judge_sheets, judged, waiting
    from hgmem.evaluation.results import load
    from hgmem.evaluation.sheets import key_of, read_key, read_scores, sheets, turned, write_sheets

    rows = load(results)
    found = sheets(rows, seed=seed, controls=controls)
    key = read_key(sheet) if scores and sheet else key_of(found)
    if scores:
        judges = {path.name: read_scores(path, key) for path in scores}
        _print_verdict(judges, key, found, rows, as_json=as_json)
        return
    if sheet is not None:
        hidden = write_sheets(found, sheet, force=force)
        plain(f"{sheet}: {counted(len(found), 'sheet')}; keep {hidden.name}, which tells the letters, from judges")
        return
    known = settings(context)
    with judge_of(known) as model:
        out = out or _folder(results[0]) / f"judge-{_UNFIT.sub('-', model.name)}.jsonl"
        left = len(waiting(found, out, judge=model.name))
        line = f"{counted(left, 'sheet')} to score by {model.name!r}, a model call each; repeated requests come on top"
        if dry_run:
            plain(line)
            return
        note(line)
        confirm_calls(left, above=known.confirm_calls, most=limits.get("max_calls"), yes=yes)
        with progress() as report:
            notes = judge_sheets(model, found, out, limits=limits, report=report)
        given = {model.name: turned(judged(found, out, judge=model.name), key, str(out))}
    note(*map(one_line, notes))
    _print_verdict(given, key, found, rows, as_json=as_json)


def _print_verdict(
    judges: "Mapping[str, Given]", key: "Key", found: "Sequence[Sheet]", rows: "Sequence[Row]", *, as_json: bool
) -> None:
    from hgmem.evaluation import presentation
    from hgmem.evaluation.report import costs_of
    from hgmem.evaluation.sheets import verdict

    whole = verdict(judges, key)
    kinds = {
        kind: verdict(judges, {sheet.id: key[sheet.id] for sheet in found if sheet.kind == kind and sheet.id in key})
        for kind in sorted({sheet.kind for sheet in found})
    }
    value = {**asdict(whole), "kinds": {kind: asdict(one)["means"] for kind, one in kinds.items()}}
    print_result(value, presentation.judged(whole, kinds, costs_of(rows)), as_json=as_json)


def _folder(results: Path) -> Path:
    return results if results.is_dir() else results.parent
