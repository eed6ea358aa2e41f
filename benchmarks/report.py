"""What a run measured, as JSON, as Markdown and as plots."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt  # after the choice of a backend that needs no screen
from matplotlib.ticker import LogLocator
from workloads import FULL

NONE = "—"


def written(found: Mapping[str, Any], folder: Path) -> str:
    """Return the Markdown of a run; it, the JSON and the plots lie in a folder of the run's own below `folder`."""
    target = folder / str(found["at"]).replace(":", "").replace("+0000", "")
    target.mkdir(parents=True, exist_ok=True)
    (target / "figures.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    text = markdown(found)
    (target / "figures.md").write_text(text, encoding="utf-8")
    _plots(found, target)
    return f"{text}\n{target}"


def markdown(found: Mapping[str, Any]) -> str:
    """Return the tables of a run: medians with 95th percentiles in milliseconds, and ratios to the floor."""
    machine = found["machine"]
    parts = [
        f"# {found['at']}",
        f"{machine['processor']}, {machine['cpus']} cores, {machine['memory']}, {machine['system']}, Python "
        f"{machine['python']}, load {machine['load']:.1f} at the start; server: heap {found['server']['heap']}, page "
        f"cache {found['server']['pagecache']}; {found['seconds']} s in all.",
        "Milliseconds: median (95th percentile). × is against the floor.",
    ]
    parts += [_versions(found)]
    if "W1" in found:
        parts += ["## W1: write a graph", _compared({"1,279 entities": found["W1"]})]
    if "W2" in found:
        parts += ["## W2: retrieve a step", _compared(found["W2"])]
    if "W3" in found:
        parts += ["## W3: a whole question of three steps, model and embedder instant", _rows(found["W3"])]
    if "W4" in found:
        parts += ["## W4: steps of three sub-queries a second", _rates(found["W4"])]
    if "W5" in found:
        parts += ["## W5, W7: a corpus that grows", _growth(found["W5"])]
    if "W8" in found:
        parts += ["## W8: memories that are large, and many", *(_grown(name, one) for name, one in found["W8"].items())]
    parts += ["## Memory", _rows({name: _memory(one) for name, one in found["memory"].items()})]
    if found["lacking"]:
        parts += ["## What systems can't", _lacking(found["lacking"])]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _versions(found: Mapping[str, Any]) -> str:
    rows = [
        (name, ", ".join(f"{package} {version}" for package, version in one.items()) if isinstance(one, dict) else one)
        for name, one in found["versions"].items()
    ]
    return table(("system", "versions"), rows)


def _compared(cases: Mapping[str, Any]) -> str:
    systems = _named(name for case in cases.values() for name in case["times"])
    rows = [(title, *(_cell(case, name) for name in systems)) for title, case in cases.items()]
    return table(("case", *map(_title, systems)), rows)


def _cell(case: Mapping[str, Any], name: str) -> str:
    if name not in case["times"]:
        return NONE
    one, ratio = case["times"][name], case["against_floor"].get(name)
    times = f" {ratio:.2f} ×" if ratio is not None and name != "floor" else ""
    return f"{one['median_ms']:.1f} ({one['p95_ms']:.1f}){times}"


def _rows(rows: Mapping[str, Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    return table(("", *columns), [(name, *(row.get(column, NONE) for column in columns)) for name, row in rows.items()])


def _rates(found: Mapping[str, Any]) -> str:
    systems = _named(name for one in found.values() for name in one["steps_a_second"])

    def cell(one: Mapping[str, Any], name: str) -> str:
        rate, ratio = one["steps_a_second"].get(name), one["against_floor"].get(name)
        return NONE if rate is None else f"{rate:.1f}" + (f" {ratio:.2f} ×" if ratio and name != "floor" else "")

    return table(
        ("threads", *systems), [(title, *(cell(one, name) for name in systems)) for title, one in found.items()]
    )


def _growth(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for row in rows:
        for name, wrote in row["write"].items():
            lines.append(
                (
                    f"{row['graphs'] * 1_279:,}",
                    name,
                    wrote["seconds"],
                    wrote["seconds_a_graph"],
                    _cell(row["step"], name),
                    wrote["megabytes_at_most"],
                    round(row["server_megabytes"]),
                    round(row["disk_megabytes"]),
                )
            )
    head = (
        "entities", "system", "seconds to write what is new", "seconds a graph, the last five", "step of 3",
        "client MB at most", "server MB", "disk MB",
    )  # fmt: skip
    return table(head, lines)


def _grown(title: str, found: Mapping[str, Any]) -> str:
    rows = [
        (name, f"{one['median_ms']:.1f} ({one['p95_ms']:.1f})", f"{found['against_the_first'][name]:.2f} ×")
        for name, one in found["times"].items()
    ]
    return table((title, "ms", "against the first"), rows)


def _memory(one: Any) -> Mapping[str, Any]:
    return {name: round(value) for name, value in one.items()} if isinstance(one, dict) else {"megabytes": one}


def _lacking(lacking: Mapping[str, Mapping[str, str]]) -> str:
    rows = [(case, name, reason) for case, one in lacking.items() for name, reason in one.items()]
    return table(("workload", "system", "why"), rows)


def _plots(found: Mapping[str, Any], folder: Path) -> None:
    if "W2" in found:
        _dots(found["W2"], folder / "steps.png")
    if "W4" in found:
        _lines(found["W4"], folder / "throughput.png")


def _dots(cases: Mapping[str, Any], path: Path) -> None:
    """Draw the milliseconds of each case, a dot a system: on a logarithmic axis bars would begin nowhere."""
    figure, axes = plt.subplots(figsize=(9, 0.45 * len(cases) + 1.6), layout="constrained")
    for name in _named(name for case in cases.values() for name in case["times"]):
        points = [
            (case["times"][name]["median_ms"], at) for at, case in enumerate(cases.values()) if name in case["times"]
        ]
        axes.plot(*zip(*points, strict=True), linestyle="", marker="o", markersize=9, **_look(name))
    axes.set_yticks(range(len(cases)), list(cases))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.grid(axis="both", color="0.9")
    axes.set_axisbelow(True)
    axes.set_xlabel("milliseconds a step, median")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _lines(found: Mapping[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    threads = [title.split()[0] for title in found]
    for name in _named(name for one in found.values() for name in one["steps_a_second"]):
        axes.plot(threads, [one["steps_a_second"].get(name) for one in found.values()], marker="o", **_look(name))
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="0.9")
    axes.set_xlabel("threads")
    axes.set_ylabel("steps of three sub-queries a second")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _named(systems: Iterable[str]) -> list[str]:
    """Return the systems, each once, in the order in which all plots and tables have them."""
    there = set(systems)
    return [name for name in FULL if name in there]


def _title(name: str) -> str:
    return "hgmem" if name == "product" else name


def _look(name: str) -> dict[str, Any]:
    """Return how a system is drawn, in every plot alike."""
    return {"label": _title(name), "color": f"C{FULL.index(name)}"}
