"""What docs/papers.md says of the code is there: places, options, and their values in the recipes."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hgmem.settings import Settings
from hgmem.systems.registry import installed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
PAPERS = {"HGMem": "hgmem", "HyperMem": "hypermem", "ReMindRAG": "remindrag", "MemoRAG": "memorag"}
CODE = {"memorag": "lite"}  # the recipe that follows the official code, where it is not named so
SPECS = {spec.name: spec for spec in installed()}
_PLACE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|toml|cypher))(?::([\w.]+))?`")
_OPTION = re.compile(r"`([a-z][a-z_.]*)=([^`]+)`")
_RECIPE = re.compile(r"recipe `([\w-]+)`")

pytestmark = pytest.mark.skipif(not (ROOT / "hgmem" / "systems").is_dir(), reason="the page names files of a checkout")


def rows(name: str) -> list[list[str]]:
    """Return the cells of a system's table."""
    parts = {part.split("\n")[0]: part for part in PAGE.read_text(encoding="utf-8").split("\n## ")}
    [part] = [part for title, part in parts.items() if PAPERS.get(title) == name]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def absent(name: str, cell: str) -> Iterator[str]:
    """Yield the places of a cell that are not in the code."""
    for file, names in _PLACE.findall(cell):
        found = [path for base in (f"hgmem/systems/{name}", "hgmem", ".") if (path := ROOT / base / file).is_file()]
        text = found[0].read_text(encoding="utf-8") if found else ""
        for one in filter(None, names.split(".")):
            if not re.search(rf"^\s*(?:def|class) {one}\b|^{one}\b.* = |^// name: {one}\(", text, re.MULTILINE):
                yield f"{file}:{names}"
        if not found:
            yield file


def value(config: Any, option: str) -> str:
    """Return the value of an option as the page writes it."""
    found = asdict(config)
    for part in option.split("."):
        found = found[part]
    if isinstance(found, bool):
        return str(found).lower()
    return ",".join(found) if isinstance(found, tuple) else f"{found:_}" if isinstance(found, int) else str(found)


@pytest.mark.parametrize("name", PAPERS.values())
def test_every_row_has_four_cells_and_names_places_that_exist(name: str) -> None:
    assert len(rows(name)) > 40
    assert [row for row in rows(name) if len(row) != 4] == []
    assert [place for row in rows(name) for cell in row for place in absent(name, cell)] == []
    variables = {variable for row in rows(name) for cell in row for variable in re.findall(r"HGMEM_(\w+)", cell)}
    assert sorted(variables - {field.upper() for field in Settings.model_fields}) == []


@pytest.mark.parametrize("name", PAPERS.values())
def test_every_option_has_the_value_that_its_row_says(name: str) -> None:
    recipes, wrong = SPECS[name].recipes, []
    for _, here, _, official in rows(name):
        recipe = _RECIPE.search(here)
        told = [(recipe[1] if recipe else "paper", *found) for found in _OPTION.findall(here)]
        told += [
            (CODE.get(name, "code"), *found)
            for same in re.findall(r"\[yes: ([^\]]+)\]", official)
            for found in _OPTION.findall(same)
        ]
        wrong += [one for one in told if value(recipes[one[0]], one[1]) != one[2]]
    assert wrong == []


def test_a_place_that_is_not_there_is_noticed() -> None:
    cell = "`loop.py:_evolve`, `loop.py:gone`, `gone.py`, `cypher/retrieval.cypher:retrieve`"
    assert list(absent("hgmem", cell)) == ["loop.py:gone", "gone.py"]
