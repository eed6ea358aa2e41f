"""`eval`: measure systems on data sets."""

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli import eval_judge
from hgmem.cli.eval_judge import DryRun, Force, ResultPaths, Yes
from hgmem.cli.front import FAILED, JsonOption, connected
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import confirm_calls
from hgmem.cli.progress import progress
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.client import HGMem

app = typer.Typer(rich_markup_mode=None)
eval_ = typer.Typer(
    name="eval", no_args_is_help=True, rich_markup_mode=None, help="Measure systems on data sets: run, report, judge."
)
app.add_typer(eval_)
eval_.add_typer(eval_judge.app)


@eval_.command()
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="TOML file of data sets, systems and limits.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask questions again that failed.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
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
            if as_json:
                print_json({**asdict(estimate), "calls": estimate.calls})
            else:
                for line in estimate.lines:
                    plain(line)
            return
        for line in estimate.lines:
            note(line)
        above, limit = work.settings.confirm_calls, "max_calls in the plan"
        confirm_calls(estimate.calls, above=above, most=plan.max_calls, yes=yes, limit=limit)
        with progress() as report:
            done = work.work(report)
    for line in done.notes:
        note(one_line(line))
    if as_json:
        print_json({**asdict(done), "output": str(plan.output)})
    else:
        asked = f"{counted(done.asked, 'question')} asked, {done.done_before:,} done before, {done.failed:,} failed"
        plain(f"{asked}; report them with `hgmem eval report {plan.output}`")
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
    force: Force = False,
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
    if as_json:
        print_json({"scores": [asdict(one) for one in found], "compared": [asdict(one) for one in compared]})
    else:
        plain(presentation.report(found, compared))
