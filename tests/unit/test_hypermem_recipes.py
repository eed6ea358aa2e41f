"""HyperMem's recipes: the ablations of the default and those of the paper, whose table a plan makes again."""

from dataclasses import asdict
from pathlib import Path

import pytest

from hgmem.evaluation.plan import read_plan
from hgmem.systems.hypermem.recipes import RECIPES

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "examples" / "eval" / "hypermem-paper.toml"
TABLE = {
    "paper-no-fact-context": {"show": ("episodes",)},
    "paper-no-episode-context": {"show": ("facts",)},
    "paper-no-topics": {"levels": ("episodes", "facts")},
    "paper-no-topics-no-fact-context": {"levels": ("episodes", "facts"), "show": ("episodes",)},
    "paper-no-topics-no-episode-context": {"levels": ("episodes", "facts"), "show": ("facts",)},
    "paper-no-topics-no-episodes": {"levels": ("facts",)},
}


def changed(recipe: str, base: str) -> dict[str, object]:
    """Return the options of a recipe that differ from those of another, with their values."""
    other = asdict(RECIPES[base])
    return {name: value for name, value in asdict(RECIPES[recipe]).items() if value != other[name]}


def test_each_ablation_leaves_out_of_its_baseline_what_its_name_says() -> None:
    assert {name: changed(name, "paper") for name in TABLE} == TABLE
    options = {
        "topics": "levels",
        "episodes": "levels",
        "search": "chunk_search",
        "propagation": "propagation",
        "ledger": "ledger",
    }
    for name in RECIPES:
        base = "paper" if name.startswith("paper-") else "default"
        left_out = [part.strip("-") for part in name.removeprefix("paper-").split("no-")[1:]]
        if left_out:
            assert changed(name, base).keys() == {options.get(part.split("-")[-1], "show") for part in left_out}, name


@pytest.mark.skipif(not PLAN.is_file(), reason="examples are files of a checkout")
def test_the_plan_makes_the_papers_table_and_its_sweep_of_topics_again() -> None:
    asked = read_plan(PLAN).systems
    assert {one.recipe for one in asked} >= {"paper", *TABLE}
    assert [one.settings["topics"] for one in asked if "topics" in one.settings] == [1, 3, 5, 15, 20]
