"""Reports as Markdown, with a section for each data set and a table for each way of counting, and their curves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.recall import FIGURES, Figure
from hgmem.evaluation.report import COSTS, PER, Compared, Mean, Scores
from hgmem.evaluation.sheets import Verdict
from hgmem.text.atomic_files import replacing
from hgmem.text.language import counted

NAMES: Mapping[Figure, str] = {
    "answer_prompt": "shown in the answer's prompt",
    "any_prompt": "shown in any prompt",
    "retrieved": "retrieved",
    "rests_on": "rests on",
}
ROUGH = "Without a judge: this does not tell whether an answer is right. `hgmem eval judge` has answers scored."
TITLES = [title for title, _ in COSTS.values()]  # of the costs


def report(found: Sequence[Scores], compared: Sequence[Compared] = ()) -> str:
    """Return the whole report."""
    parts = ["# Results", "Means over questions with 95 % intervals (bootstrap). Costs are means of a question."]
    for data in dict.fromkeys(score.data for score in found):
        listed = [scores for scores in found if scores.data == data]
        parts += [f"## {data}", *_unplaced(listed), *_tables(listed)]
        parts += [_compared(scores) for scores in compared if scores.data == data]
    return "\n\n".join(parts)


def judged(verdict: Verdict, kinds: Mapping[str, Verdict], costs: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return what judges say: means beside the costs of an answer, wins, means by kind, and how judges agree."""
    ranked = sorted(verdict.means, key=lambda system: -(mean.mean if (mean := verdict.means[system]) else -1.0))
    rows = [[system, number(verdict.means[system], 1), *_amounts(costs.get(system, {}))] for system in ranked]
    wins = [
        [system, *("" if system == other else f"{100 * verdict.wins[system][other]:.0f}" for other in ranked)]
        for system in ranked
    ]
    parts = [
        f"# Scores of {', '.join(verdict.judges)}",
        f"{verdict.sheets} sheets, {verdict.missing} scores missing. Scores from 0 to 100, with 95 % intervals.",
        table(["system", "score", *TITLES], rows),
        "## Wins in per cent, row over column; a tie is half",
        table(["", *ranked], wins),
        "## By kind of question",
        table(
            ["system", *kinds],
            [[system, *(number(each.means.get(system), 1) for each in kinds.values())] for system in ranked],
        ),
    ]
    if verdict.correlations:
        pairs = [[name, "–" if value is None else f"{value:.2f}"] for name, value in verdict.correlations.items()]
        parts += ["## Correlation of judges", table(["judges", "correlation"], pairs)]
    if verdict.fooled is not None:
        parts.append(f"Control answers: on {verdict.fooled} sheets the right one was not above both others.")
    return "\n\n".join(parts)


def plot(found: Sequence[Scores], file: Path, *, force: bool) -> None:
    """Write the curves as a PNG file: a row for each data set, by characters and by chunks.

    Raises `UsageError` without matplotlib, which the extra `bench` installs.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("a plot needs matplotlib: pip install 'hgmem[bench]', or omit --plot") from error
    names = list(dict.fromkeys(score.data for score in found))
    figure = Figure(figsize=(11, 4 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 2, squeeze=False)
    for row, name in zip(grid, names, strict=True):
        for axes, axis in zip(row, ("characters", "chunks"), strict=True):
            for score in found:
                if score.data == name:
                    means = [(at, mean.mean) for at, mean in getattr(score, axis).items() if mean]
                    axes.plot([at for at, _ in means], [value for _, value in means], marker="o", label=score.label)
            axes.set(xlabel=axis, ylabel="evidence found", ylim=(0, 1), title=name)
            axes.legend(fontsize="small")
    with replacing(file, force=force) as written:
        figure.savefig(written, format="png", dpi=120)


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table, its first column a name and the others numbers."""
    titles = [_cell(title) for title in head]
    rule = "|".join(["---", *("---:" for _ in titles[1:])])
    return "\n".join(
        [f"| {' | '.join(titles)} |", f"|{rule}|", *(f"| {' | '.join(map(_cell, row))} |" for row in rows)]
    )


def number(mean: Mean | None, digits: int = 2) -> str:
    """Return a mean with its interval."""
    if mean is None:
        return "–"
    return f"{mean.mean:.{digits}f} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]"


def _unplaced(found: Sequence[Scores]) -> Iterator[str]:
    """Yield a line on evidence that no system can retrieve, if there is such."""
    most = max(scores.unplaced for scores in found)
    if most:
        yield (
            f"{counted(most, 'piece')} of evidence: not in the corpus, word for word, so never retrieved. "
            "Correct the questions, or the documents or graph."
        )


def _tables(found: Sequence[Scores]) -> Iterator[str]:
    yield _figures("Evidence found", found, lambda scores: scores.found)
    yield _figures("All evidence found", found, lambda scores: scores.all_found)
    yield _figures(f"Evidence found per {PER:,} characters", found, lambda scores: scores.per_characters)
    yield _curves("Evidence found among the first characters of the ranking", found, lambda scores: scores.characters)
    yield _curves("Evidence found among the first chunks of the ranking", found, lambda scores: scores.chunks)
    words = table(["system", "key words"], [[scores.label, number(scores.key_words)] for scores in found])
    yield f"### Key words of the reference in the answer (rough)\n\n{ROUGH}\n\n{words}"
    yield "### By kind of question"
    rows = [
        [scores.label, kind, *(number(means[name]) for name in FIGURES)]
        for scores in found
        for kind, means in scores.kinds.items()
    ]
    yield table(["system", "kind", *NAMES.values()], rows)


def _figures(title: str, found: Sequence[Scores], means: Callable[[Scores], Mapping[str, Mean | None]]) -> str:
    rows = [
        [
            scores.label,
            str(scores.questions),
            str(scores.errors),
            *(number(means(scores)[name]) for name in FIGURES),
            *_amounts(scores.costs),
        ]
        for scores in found
    ]
    head = ["system", "questions", "errors", *NAMES.values(), *TITLES]
    return f"### {title}\n\n{table(head, rows)}"


def _amounts(costs: Mapping[str, float | None]) -> Iterator[str]:
    for name in COSTS:
        value = costs.get(name)
        yield "–" if value is None else f"{value:,.2f}" if name == "seconds" else f"{value:,.0f}"


def _curves(title: str, found: Sequence[Scores], means: Callable[[Scores], Mapping[int, Mean | None]]) -> str:
    marks = sorted({at for scores in found for at in means(scores)})
    rows = [[scores.label, *(number(means(scores).get(at)) for at in marks)] for scores in found]
    return f"### {title}\n\n{table(['system', *(f'{at:,}' for at in marks)], rows)}"


def _compared(pair: Compared) -> str:
    rows = [[NAMES[name], number(pair.found[name]), number(pair.all_found[name])] for name in FIGURES]
    shared = next((mean.n for mean in pair.found.values() if mean), 0)
    title = f"### {pair.first} minus {pair.second}, {shared} questions of both"
    return f"{title}\n\n{table(['figure', 'evidence found', 'all evidence found'], rows)}"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
