"""The curves of a report as a picture. It needs matplotlib, which the extra `bench` installs."""

from collections.abc import Sequence
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.report import Scores
from hgmem.text.atomic_files import replacing


def plot(found: Sequence[Scores], file: Path, *, force: bool) -> None:
    """Write the curves as a PNG file: a row for each data set, by characters and by chunks.

    Raises `UsageError` without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("a plot needs matplotlib: pip install 'hgmem[bench]', or omit --plot") from error
    names = list(dict.fromkeys(one.data for one in found))
    figure = Figure(figsize=(11, 4 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 2, squeeze=False)
    for row, name in zip(grid, names, strict=True):
        for axes, axis in zip(row, ("characters", "chunks"), strict=True):
            for one in (each for each in found if each.data == name):
                means = [(at, mean.mean) for at, mean in getattr(one, axis).items() if mean]
                axes.plot([at for at, _ in means], [value for _, value in means], marker="o", label=one.label)
            axes.set(xlabel=axis, ylabel="evidence found", ylim=(0, 1), title=name)
            axes.legend(fontsize="small")
    with replacing(file, force=force) as written:
        figure.savefig(written, format="png", dpi=120)
