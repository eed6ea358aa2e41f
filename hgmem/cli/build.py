"""`build`: make what a system needs of a corpus before it can answer."""

import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.ask import Changes, changes
from hgmem.cli.front import (
    DEFAULT_CORPUS,
    FAILED,
    CorpusOption,
    DryRunOption,
    JsonOption,
    MaxCallsOption,
    MaxTokensOption,
    YesOption,
    connected,
)
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import confirm_calls, with_work_left
from hgmem.cli.progress import progress
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.values.ask_options import BuildOptions
    from hgmem.values.reports import BuildPlan, BuildReport

app = typer.Typer(rich_markup_mode=None)


@app.command()
def build(
    context: typer.Context,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A system that builds, see `hgmem systems`.")],
    corpus: CorpusOption = DEFAULT_CORPUS,
    recipe: Annotated[str | None, typer.Option(metavar="NAME", help="Preset of the system.")] = None,
    set_: Changes = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make failed units again.")] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make what a system needs of a corpus before it can answer.

    Only what has changed since is made, so rerun the same command to resume. Without --recipe and --set, a build is
    made anew with the options of the last run. Exits 1 if parts of it failed.
    """
    began = time.monotonic()
    with connected(context, corpus) as client:
        chosen: BuildOptions = {"recipe": recipe, "settings": changes(set_ or ()), "retry_failed": retry_failed}
        plans = partial(client.plan_build, system, **chosen)
        if dry_run:
            _print_plan(plans(), as_json=as_json)
            return
        plan = plans()
        if plan.calls:
            note(_planned(plan))
            confirm_calls(plan.calls, above=client.settings.confirm_calls, most=max_calls, yes=yes)
        with progress() as report, with_work_left(lambda: f"at most {counted(plans().units, 'unit')}"):
            done = client.build(system, report=report, max_calls=max_calls, max_tokens=max_tokens, **chosen)
    seconds = round(time.monotonic() - began, 3)
    for error in done.errors:
        note(one_line(error))
    if done.failed:
        units = counted(done.failed, "unit")
        note(f"{units} failed: retry with `hgmem build {system} --corpus {corpus} --retry-failed`")
    if as_json:
        print_json({"corpus": corpus, **asdict(done), "seconds": seconds})
    else:
        plain(_summary(done, seconds))
    if not done.whole:
        raise typer.Exit(FAILED)


def _print_plan(plan: "BuildPlan", *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(plan), "units": plan.units, "calls": plan.calls, "prompt_tokens": plan.prompt_tokens})
        return
    for stage in plan.stages:
        if not stage.units:
            continue
        units = counted(stage.units, "unit") if stage.listed else f"at most {counted(stage.units, 'unit')}"
        calls = f"at most {counted(stage.calls, 'model call')}" if stage.calls else "no model calls"
        plain(f"{stage.stage}: {units}, {calls}")
    plain(_planned(plan))


def _planned(plan: "BuildPlan") -> str:
    exact = all(stage.listed for stage in plan.stages)
    units = f"{'' if exact else 'at most '}{counted(plan.units, 'unit')} to make"
    if not plan.calls:
        return f"{units}, no model calls"
    return (
        f"{units}, at most {counted(plan.calls, 'model call')}, {plan.prompt_tokens:,} prompt tokens and "
        f"{plan.completion_tokens_at_most:,} reply tokens"
    )


def _summary(done: "BuildReport", seconds: float) -> str:
    parts = [f"{counted(done.made, 'unit')} made", f"{done.unchanged} unchanged", f"{done.failed} failed"]
    parts += [f"{done.waiting} waiting for these"] if done.waiting else []
    parts += [f"{done.dropped} dropped, as their texts were deleted meanwhile"] if done.dropped else []
    parts += [f"{done.deleted} deleted"] if done.deleted else []
    return f"{done.system}: {', '.join(parts)}; {counted(done.calls, 'model call')} ({seconds:.1f} s)"
