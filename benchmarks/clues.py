"""Measure the retrieval of MemoRAG without a language model: its recipes beside other systems, and over ratios.

The data are the invented papers: their questions, and those of themes.jsonl, which name nothing to search for. Writes
two plans for `hgmem eval run` under `.hgmem/bench/clues`, runs them on a server of its own, prints both reports, and
draws recall over the ratio. A run that was interrupted goes on.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from evaluating import PAPERS, evaluated
from kept import BENCH

from hgmem.evaluation.report import Scores, scores
from hgmem.evaluation.results import load as load_rows
from hgmem.local import up
from hgmem.settings import load

matplotlib.use("agg")
from matplotlib import pyplot as plt  # after selecting a backend that needs no screen

RECIPES = ("default", "question-only", "spans-only", "queries-only", "no-memory", "full", "paper", "lite")
RATIOS = (4, 8, 16, 32, 64)
TOKENS = 7_500  # of evidence, about 30,000 characters: what 40 chunks have
MANY = 60  # hits where the question alone searches, so that it fills the same budget


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="ask the first N questions")
    options = parser.parse_args()
    folder = BENCH / "clues"
    data = folder / "papers"
    shutil.copytree(PAPERS / "documents", data / "documents", dirs_exist_ok=True)
    shutil.copy(PAPERS / "graph.jsonl.gz", data)
    questions = [(PAPERS / name).read_text(encoding="utf-8") for name in ("questions.jsonl", "themes.jsonl")]
    (data / "questions.jsonl").write_text("".join(questions), encoding="utf-8")
    environment = {"HGMEM_DATA": str(folder / "neo4j")}
    up(load(data=folder / "neo4j"))
    head = f"limit = {options.limit}\n" if options.limit else ""
    for name, systems in (("systems", _systems()), ("ratios", _ratios())):
        plan = folder / f"{name}.toml"
        plan.write_text(
            f'output = "{name}"\n{head}[[data]]\npath = "{data}"\nformat = "hgmem"\n{systems}', encoding="utf-8"
        )
        evaluated(plan, folder / name, environment)
    _draw(scores(load_rows([folder / "ratios"])), folder / "ratios.png")
    return 0


def _systems() -> str:
    others = [_system("naive", settings={"chunks": 40}), _system("hybrid", settings={"chunks": 40})]
    others.append(_system("hgmem", recipe="default"))
    for recipe in RECIPES:
        hits = {"hits": MANY} if recipe == "question-only" else {}
        others.append(_system("memorag", recipe=recipe, settings={"evidence_tokens": TOKENS, **hits}))
    return "".join(others)


def _ratios() -> str:
    common = {"evidence_tokens": TOKENS, "memory_tokens": 100_000, "fill": "false"}  # what clues find, and no more
    return "".join(_system("memorag", settings={"ratio": ratio, **common}) for ratio in RATIOS)


def _system(name: str, *, recipe: str = "", settings: dict[str, Any] | None = None) -> str:
    lines = ["[[systems]]", f'name = "{name}"', *([f'recipe = "{recipe}"'] if recipe else [])]
    if settings:
        lines.append("settings = { " + ", ".join(f"{key} = {value}" for key, value in settings.items()) + " }")
    return "\n" + "\n".join(lines) + "\n"


def _draw(found: Sequence[Scores], path: Path) -> None:
    """Draw the share of evidence found over the ratio, with 95 % intervals, and write it as a PNG."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for measure, named in (("answer_prompt", "found by clues and question"), ("any_prompt", "with what memory shows")):
        means = [mean for one in found if (mean := one.found[measure])]
        low = [mean.mean - mean.low for mean in means]
        high = [mean.high - mean.mean for mean in means]
        axes.errorbar(RATIOS, [mean.mean for mean in means], yerr=[low, high], marker="o", capsize=3, label=named)
    axes.set_xscale("log", base=2)
    axes.set_xticks(RATIOS, [str(ratio) for ratio in RATIOS])
    axes.set_xlabel("tokens of text for each token of memory (β)")
    axes.set_ylabel("share of the evidence")
    axes.set_ylim(0, 1)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
