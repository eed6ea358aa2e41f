"""The plots of a run: steps with their recall, throughput, and growth."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt  # after selecting a backend that needs no screen
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator
from workloads import FULL, label, ordered

COLUMNS = 2  # of cases
Look: TypeAlias = Mapping[str, Any]  # style of a system, the same in every plot
Looks: TypeAlias = Mapping[str, Look]  # by system


def plots(found: Mapping[str, Any], folder: Path) -> None:
    """Write a PNG for each workload that has a plot."""
    systems = ordered({*FULL, *found["versions"]})
    looks = {name: {"label": label(name), "color": f"C{place}"} for place, name in enumerate(systems)}
    if "W2" in found:
        _steps(found["W2"], looks, folder / "steps.png")
    if "W4" in found:
        _throughput(found["W4"], looks, folder / "throughput.png")
    if len(found.get("W5", {}).get("grown", [])) > 1 or "sizes" in found.get("large", {}):
        _growth(found, looks, folder / "growth.png")


def _steps(cases: Mapping[str, Any], looks: Looks, path: Path) -> None:
    """Draw a panel of bars for each case: milliseconds from zero, with the recall of entities and chunks."""
    systems = ordered(name for case in cases.values() for name in case["times"])
    rows = -(-len(cases) // COLUMNS)
    figure, panels = plt.subplots(
        rows, COLUMNS, figsize=(12, rows * (0.3 * len(systems) + 0.9)), layout="constrained", squeeze=False
    )
    for axes, (title, case) in zip(panels.flat, cases.items(), strict=False):
        _bars(axes, case, {name: looks[name] for name in systems})
        axes.set_title(title, loc="left", fontsize=10)
    for axes in panels.flat[len(cases) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "milliseconds a step, median; beside the bars: recall of the nearest entities and chunks", fontsize=10
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _bars(axes: Axes, case: Mapping[str, Any], looks: Looks) -> None:
    most = max((one["median_ms"] for one in case["times"].values()), default=1)
    for at, name in enumerate(looks):
        if name not in case["times"]:
            axes.annotate(
                "no figure", (0, at), xytext=(4, 0), textcoords="offset points", va="center", color="0.5", fontsize=8
            )
            continue
        one, found = case["times"][name]["median_ms"], case["found"][name]
        axes.barh(at, one, color=looks[name]["color"], height=0.7)
        recalls = [found.get(f"recall_of_{kind}") for kind in ("entities", "chunks")]
        said = " / ".join("—" if part is None else f"{part:.2f}" for part in recalls)
        axes.annotate(
            f"{one:.1f} ms   {said}", (one, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.set_yticks(range(len(looks)), [look["label"] for look in looks.values()], fontsize=8)
    axes.set_xlim(0, 1.45 * most)  # room for the text beside the longest bar
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(len(looks) - 0.4, -0.6)  # the first one on top
    axes.spines[["top", "right"]].set_visible(False)


def _throughput(found: Mapping[str, Any], looks: Looks, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    threads = [title.split()[0] for title in found]
    for name in ordered(name for one in found.values() for name in one["steps_a_second"]):
        rates = [one["steps_a_second"].get(name, float("nan")) for one in found.values()]
        axes.plot(threads, rates, marker="o", **looks[name])
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="0.9")
    axes.set_xlabel("threads")
    axes.set_ylabel("steps of three sub-queries a second")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _growth(found: Mapping[str, Any], looks: Looks, path: Path) -> None:
    """Draw the time of a step, of a question and of writing one more graph by entities; both axes are logarithmic."""
    figure, panels = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
    entities = found["graph"]["entities"]
    rows = found.get("W5", {}).get("grown", [])
    spread = [found["W5"]["spread"]] if "spread" in found.get("W5", {}) else []
    for name in ordered(name for row in (*rows, *spread) for name in row["write"]):
        for points, look in (
            (rows, {"marker": "o"}),
            (spread, {"marker": "D", "linestyle": "", "label": "", "mfc": "none"}),
        ):
            look = {**looks[name], **look}
            _line(
                panels[0],
                entities,
                ((row, row["step"]["times"].get(name, {}).get("median_ms")) for row in points),
                look,
            )
            _line(
                panels[2], entities, ((row, row["write"].get(name, {}).get("seconds_a_graph")) for row in points), look
            )
            if name == "product":
                _line(panels[1], entities, ((row, row.get("question", {}).get("median_ms")) for row in points), look)
    _large(panels, found.get("large", {}), entities, looks["product"])
    titles = (
        "milliseconds a step of 3, median",
        "milliseconds a question of three steps",
        "seconds to write one graph",
    )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_visible(axes.has_data())
        _logarithmic(axes, title)
    panels[2].legend(loc="center left", bbox_to_anchor=(1, 0.5), title="◇ a graph a corpus" if spread else None)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _large(panels: Any, found: Mapping[str, Any], entities: int, look: Look) -> None:
    """Draw the large corpus of hgmem alone."""
    look = {**look, "linestyle": "--", "marker": "s", "label": "hgmem, alone on its server"}
    sizes = [({"graphs": one["size"]}, one) for one in found.get("sizes", [])]
    for axes, what in ((panels[0], "step"), (panels[1], "question")):
        _line(axes, entities, ((row, one[what]["large"]["median_ms"]) for row, one in sizes), look)
    along = found.get("along", [])
    _line(panels[2], entities, ((one, one["seconds_a_graph"]) for one in along), {**look, "markersize": 3})


def _line(
    axes: Axes, entities: int, points: Iterable[tuple[Mapping[str, Any], float | None]], look: Mapping[str, Any]
) -> None:
    known = [(row["graphs"] * entities, value) for row, value in points if value]
    if known:
        axes.plot(*zip(*known, strict=True), **look)


def _logarithmic(axes: Axes, title: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    wider = max(1, math.sqrt(10 * low / high))  # less than a decade would make noise look like growth
    axes.set_ylim(low / wider, high * wider)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter("")
    axes.grid(axis="both", color="0.9")
    axes.set_axisbelow(True)
    axes.set_xlabel("entities")
    axes.set_title(title, loc="left", fontsize=10)
