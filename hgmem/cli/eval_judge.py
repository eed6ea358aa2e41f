"""`eval judge`: scores for answers, by a model or by people."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hgmem.cli.front import JsonOption, settings
from hgmem.cli.output import note, one_line, plain, print_json
from hgmem.cli.planned import confirm_calls
from hgmem.cli.progress import progress
from hgmem.text.language import counted

if TYPE_CHECKING:
    from hgmem.evaluation.results import Row
    from hgmem.evaluation.sheets import Given, Key, Sheet
    from hgmem.settings import Settings

ResultPaths = Annotated[
    list[Path], typer.Argument(metavar="RESULTS…", help="Output folders of runs, or their results.jsonl.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print planned work and cost; write nothing.")]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    """How a model judges: where its scores go, and within which limits."""

    folder: Path
    out: Path | None
    limits: Mapping[str, int | None]
    yes: bool
    dry_run: bool
    as_json: bool


@app.command()
def judge(
    context: typer.Context,
    results: ResultPaths,
    sheet: SheetFile = None,
    scores: ScoreFiles = None,
    controls: Controls = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the letters.")] = 1,
    out: ScoresOut = None,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N tokens.")] = None,
    force: Force = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Score answers under shuffled letters, by HGMEM_MODEL or by people.

    Without --sheet and --scores, the model scores each sheet, and a rerun resumes. For people, write sheets with
    --sheet, then pass the files of their scores with --scores.
    """
    from hgmem.evaluation.results import load
    from hgmem.evaluation.sheets import key_of, read_key, read_scores, sheets, write_sheets

    rows = load(results)
    found = sheets(rows, seed=seed, controls=controls)
    if scores:
        key: Key = read_key(sheet) if sheet else key_of(found)
        _print_verdict({path.name: read_scores(path, key) for path in scores}, key, rows, as_json=as_json)
        return
    if sheet is not None:
        hidden = write_sheets(found, sheet, force=force)
        plain(f"{sheet}: {counted(len(found), 'sheet')}; keep {hidden.name}, which tells the letters, from judges")
        return
    folder, limits = _folder(results[0]), {"max_calls": max_calls, "max_tokens": max_tokens}
    chosen = _Judging(folder=folder, out=out, limits=limits, yes=yes, dry_run=dry_run, as_json=as_json)
    _judge(settings(context), rows, found, chosen)


def _judge(known: "Settings", rows: "Sequence[Row]", found: "Sequence[Sheet]", chosen: _Judging) -> None:
    from hgmem.evaluation.judging import judge_of, judge_sheets, judged, waiting
    from hgmem.evaluation.sheets import key_of, turned

    with judge_of(known) as model:
        out = chosen.out or chosen.folder / f"judge-{_UNFIT.sub('-', model.name)}.jsonl"
        left = len(waiting(found, out, judge=model.name))
        calls = counted(left, "sheet")
        line = f"{calls} to score by {model.name!r}, a model call each; repeated requests come on top"
        if chosen.dry_run:
            plain(line)
            return
        note(line)
        confirm_calls(left, above=known.confirm_calls, most=chosen.limits["max_calls"], yes=chosen.yes)
        with progress() as report:
            notes = judge_sheets(model, found, out, limits=chosen.limits, report=report)
        key, name = key_of(found), model.name
        given = turned(judged(found, out, judge=name), key, str(out))
    for each in notes:
        note(one_line(each))
    _print_verdict({name: given}, key, rows, as_json=chosen.as_json)


def _print_verdict(judges: "Mapping[str, Given]", key: "Key", rows: "Sequence[Row]", *, as_json: bool) -> None:
    from hgmem.evaluation import presentation
    from hgmem.evaluation.report import costs_of
    from hgmem.evaluation.sheets import kinds_of, verdict

    whole = verdict(judges, key)
    kinds = {
        kind: verdict(judges, {sheet: key[sheet] for sheet in names if sheet in key})
        for kind, names in kinds_of(rows).items()
    }
    if as_json:
        print_json({**asdict(whole), "kinds": {kind: asdict(one)["means"] for kind, one in kinds.items()}})
    else:
        plain(presentation.judged(whole, kinds, costs_of(rows)))


def _folder(results: Path) -> Path:
    return results if results.is_dir() else results.parent
