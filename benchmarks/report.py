"""The results of a run as JSON, Markdown and plots."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from comparing import against_peers
from plots import plots
from workloads import label, ordered

from hgmem.evaluation.presentation import table

NONE = "—"


def written(found: Mapping[str, Any], folder: Path) -> str:
    """Write the Markdown, the JSON and the plots of a run to its own folder below `folder`; return the Markdown."""
    target = saved(found, folder)
    text = markdown(found)
    (target / "figures.md").write_text(text, encoding="utf-8")
    plots(found, target)
    return f"{text}\n{target}"


def saved(found: Mapping[str, Any], folder: Path) -> Path:
    """Write only the JSON, with the results so far; return the run's own folder below `folder`."""
    target = folder / str(found["at"]).replace(":", "").replace("+0000", "")
    target.mkdir(parents=True, exist_ok=True)
    (target / "figures.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    return target


def markdown(found: Mapping[str, Any]) -> str:
    """Return the tables of a run: medians with 95th percentiles in milliseconds, and ratios to the floor."""
    parts = [*_about(found), _versions(found)]
    for name, (title, told) in _parts(found).items():
        if found.get(name):
            parts += [f"## {title}", *told(found[name])]
    return "\n\n".join(parts) + "\n"


def _parts(found: Mapping[str, Any]) -> dict[str, tuple[str, Callable[[Any], Sequence[str]]]]:
    """Return the title and tables of each workload."""
    return {
        "W1": ("W1: write a graph", lambda one: [_compared({_size(found, 1): one})]),
        "W2": ("W2: retrieve a step", lambda one: [_compared(one), *_bought(one), *_against(one)]),
        "W3": ("W3: a whole question of three steps, model and embedder instant", lambda one: [_rows(one)]),
        "W4": ("W4: steps of three sub-queries a second", lambda one: [_rates(one)]),
        "W5": ("W5, W7: a corpus that grows, and as many graphs in a corpus each", lambda _: _growth(found)),
        "W6": ("W6: indexing a text", lambda one: _script(one, _waiting)),
        "W8": ("W8: memories that are large, and many", lambda one: [_grown(*each) for each in one.items()]),
        "crowding": ("Recall beside nine near-copies", lambda one: _script(one, _crowding)),
        "W9": ("W9: passages that questions rest on", lambda one: _script(one, _quality)),
        "large": ("A large corpus", lambda one: _script(one, _large)),
        "memory": ("Memory", lambda one: [_rows({label(name): _memory(each) for name, each in one.items()})]),
        "lacking": ("What systems can't", lambda one: [_lacking(one)]),
    }


def _about(found: Mapping[str, Any]) -> list[str]:
    machine, graph = found["machine"], found["graph"]
    return [
        f"# {found['at']}",
        f"{machine['processor']}, {machine['cpus']} cores, {machine['memory']}, {machine['system']}, Python "
        f"{machine['python']}, load {machine['load']:.1f} at the start; server: heap {found['server']['heap']}, page "
        f"cache {found['server']['pagecache']}; {found['seconds']} s in all.",
        f"A graph is {graph['entities']:,} entities, {graph['relations']:,} relations and {graph['chunks']:,} chunks, "
        f"of {graph['of']}.",
        "Milliseconds: median (95th percentile)." + " × is against the floor." * ("floor" in found["versions"]),
    ]


def _size(found: Mapping[str, Any], graphs: int) -> str:
    return f"{graphs * found['graph']['entities']:,} entities"


def _versions(found: Mapping[str, Any]) -> str:
    rows = [
        (name, ", ".join(f"{package} {version}" for package, version in one.items()) if isinstance(one, dict) else one)
        for name, one in found["versions"].items()
    ]
    return table(("system", "versions"), rows)


def _compared(cases: Mapping[str, Any]) -> str:
    systems = ordered(name for case in cases.values() for name in case["times"])
    rows = [(title, *(_cell(case, name) for name in systems)) for title, case in cases.items()]
    return table(("case", *map(label, systems)), rows)


def _cell(case: Mapping[str, Any], name: str) -> str:
    if name not in case["times"]:
        return NONE
    one, ratio = case["times"][name], case["against_floor"].get(name)
    times = f" {ratio:.2f} ×" if ratio is not None and name != "floor" else ""
    return f"{one['median_ms']:.1f} ({one['p95_ms']:.1f}){times}"


def _bought(cases: Mapping[str, Any]) -> list[str]:
    """Return the results for these times: recall of the nearest, and the number of items found."""
    systems = ordered(name for case in cases.values() for name in case["found"])

    def cell(case: Mapping[str, Any], name: str) -> str:
        one = case["found"].get(name)
        if one is None:
            return NONE
        counts = "/".join(f"{one[kind]:.0f}" for kind in ("entities", "relations", "chunks"))
        return f"{recalls(one)} ({counts})"

    rows = [(title, *(cell(case, name) for name in systems)) for title, case in cases.items()]
    return [
        "Recall of the five nearest entities and chunks of each sub-query by exact cosine (entities, relations and "
        "chunks found). Entities: outside of what is to be left out; a local sub-query's among those around its "
        "points. Of chunks all that a step found counts, by vectors and by words.",
        table(("case", *map(label, systems)), rows),
    ]


def recalls(one: Mapping[str, float]) -> str:
    """Return both recalls of a system in a case."""
    return ", ".join(f"{one[name]:.2f}" if name in one else NONE for name in ("recall_of_entities", "recall_of_chunks"))


def _against(cases: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of the fastest peers on Neo4j, with recall and missing features; empty if none ran."""
    compared = against_peers(cases)
    if not any(one["fastest"] for one in compared):
        return ()
    rows: list[Sequence[object]] = []
    for one in compared:
        own = (one["case"], f"{one['product_ms']:.1f}", recalls(one["product_found"]))
        fastest, as_good = one["fastest"], one["fastest_as_good"]
        rows += [(*own, *_peer(fastest, "the fastest" if fastest != as_good else "the fastest, and as good"))]
        if fastest and fastest != as_good:
            rows += [(*own, *_peer(as_good, "the fastest as good"))]
    head = ("case", "hgmem", "recall", "peer on Neo4j", "", "ms", "recall", "over hgmem", "what it does not do there")
    return [table(head, rows)]


def _peer(peer: Mapping[str, Any] | None, which: str) -> Sequence[object]:
    if not peer:
        return ("none as good" if "good" in which and which != "the fastest, and as good" else "none can", *[NONE] * 5)
    found = (f"{peer['ms']:.1f}", recalls(peer["found"]), f"{peer['ratio']:.2f} ×", peer["lacks"])
    return (label(peer["name"]), which, *found)


def _rows(rows: Mapping[str, Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    head = ("", *(column.replace("_", " ") for column in columns))
    return table(head, [(name, *(row.get(column, NONE) for column in columns)) for name, row in rows.items()])


def _rates(found: Mapping[str, Any]) -> str:
    systems = ordered(name for one in found.values() for name in one["steps_a_second"])

    def cell(one: Mapping[str, Any], name: str) -> str:
        rate, ratio = one["steps_a_second"].get(name), one["against_floor"].get(name)
        return NONE if rate is None else f"{rate:.1f}" + (f" {ratio:.2f} ×" if ratio and name != "floor" else "")

    rows = [(title, *(cell(one, name) for name in systems)) for title, one in found.items()]
    return table(("threads", *map(label, systems)), rows)


def _growth(found: Mapping[str, Any]) -> list[str]:
    spread = [found["W5"]["spread"]] if "spread" in found["W5"] else []
    ways = [("one", row) for row in found["W5"]["grown"]] + [(f"{row['graphs']}", row) for row in spread]
    lines = [
        (
            f"{row['graphs'] * found['graph']['entities']:,}",
            corpora,
            label(name),
            wrote["seconds"],
            wrote["seconds_a_graph"],
            _cell(row["step"], name),
            recalls(row["step"]["found"].get(name, {})),
            row["question"]["median_ms"] if name == "product" and "question" in row else NONE,
            wrote["megabytes_at_most"],
            round(row["server_megabytes"]),
            round(row["disk_megabytes"]),
        )
        for corpora, row in ways
        for name, wrote in row["write"].items()
    ]
    head = (
        "entities", "corpora", "system", "seconds to write what is new", "seconds a graph, the last five", "step of 3",
        "recall", "question", "client MB at most", "server MB", "disk MB, of all systems",
    )  # fmt: skip
    return [table(head, lines)]


def _script(found: Mapping[str, Any], told: Any) -> list[str]:
    """Return the tables of a separate script, or the reason for its missing results."""
    if "lacking" in found:
        return [f"Not measured: {found['lacking']}"]
    return [*([f"**Missed:** {found['failed']}"] if "failed" in found else []), *told(found)]


def _waiting(found: Mapping[str, Any]) -> list[str]:
    said = f"{found['characters']:,} characters. Waited for: the share of the time in which a call is under way."
    return [said, _rows({name: one for name, one in found.items() if isinstance(one, dict)})]


def _crowding(found: Mapping[str, Any]) -> list[str]:
    rows = [
        (name, over, *one.values())
        for name, each in found.items()
        if isinstance(each, dict)
        for over, one in each.items()
    ]
    return [
        table(
            ("", "over-fetch", "entities", "searched chunks", "chunks", "by words", "by words, first 100 ranked"), rows
        )
    ]


def _quality(found: Mapping[str, Any]) -> list[str]:
    parts = {part: one for part, one in found.items() if isinstance(one, dict) and "naive" in one}
    rows = [(part, name, *recall) for part, one in parts.items() for name, recall in one.items() if name != "questions"]
    return [table(("questions", "", "@5", "@10", "@20"), rows)]


def _large(found: Mapping[str, Any]) -> list[str]:
    entities = found["graph"]["entities"]
    steps = [
        (
            f"{one['size'] * entities:,}",
            *(
                f"{one[what][corpus]['median_ms']:.1f}"
                for what in ("step", "question")
                for corpus in ("large", "small")
            ),
            recalls(one["step"]["large"]["found"]),
        )
        for one in found["sizes"]
    ]
    head = (
        "entities",
        "step of 3",
        f"step at {entities:,} beside it",
        "question",
        f"question at {entities:,}",
        "recall",
    )
    along = [(f"{one['graphs'] * entities:,}", *(one[name] for name in ALONG.values())) for one in found["along"]]
    disk = {f"{one['size'] * entities:,} entities": one["bytes"] for one in found["sizes"]}
    return [
        table(head, steps),
        table(("entities", *ALONG), along),
        *_slower(found.get("growth_of_writing")),
        "Bytes on disk, after a checkpoint:",
        _turned(disk),
    ]


def _slower(growth: Mapping[str, float] | None) -> list[str]:
    if not growth:
        return []
    return [
        f"Seconds a graph: {growth['last']} for the last 25, {growth['lowest_of_the_first']} for the cheapest 25 of "
        f"the first 100: {growth['ratio']:.2f} ×."
    ]


ALONG = {
    "seconds a graph": "seconds_a_graph",
    "client MB above its start": "client_megabytes",
    "server MB": "server_megabytes",
    "disk MB": "disk_megabytes",
}


def _turned(columns: Mapping[str, Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for one in columns.values() for name in one))
    return table(("", *columns), [(name, *(one.get(name, NONE) for one in columns.values())) for name in names])


def _grown(title: str, found: Mapping[str, Any]) -> str:
    rows = [
        (name, f"{one['median_ms']:.1f} ({one['p95_ms']:.1f})", f"{found['against_the_first'][name]:.2f} ×")
        for name, one in found["times"].items()
    ]
    return table((title, "ms", "against the first"), rows)


def _memory(one: Any) -> Mapping[str, Any]:
    return {name: round(value) for name, value in one.items()} if isinstance(one, dict) else {"megabytes": one}


def _lacking(lacking: Mapping[str, Mapping[str, str]]) -> str:
    cases: dict[tuple[str, str], list[str]] = {}
    for case, one in lacking.items():
        for name, reason in one.items():
            cases.setdefault((label(name), reason), []).append(case)
    rows = [(name, "; ".join(several), reason) for (name, reason), several in cases.items()]
    return table(("system", "workloads", "why"), rows)
