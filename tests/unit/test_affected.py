"""Tests of which test files `pytest --affected` runs: those that a changed file is reached from."""

from pathlib import Path

import pytest
from affected import ROOT, Affected

HERE = Path(__file__).parent


@pytest.fixture
def affected() -> Affected:
    if not (ROOT / ".git").exists():
        pytest.skip("which files changed is read from git, and this is no checkout")
    return Affected()


@pytest.mark.parametrize(
    ("changed", "file", "runs"),
    [
        ("hgmem/sources/files/pdf.py", "test_load.py", True),  # loaded by its name
        ("hgmem/sources/files/pdf.py", "test_limits.py", False),
        ("hgmem/text/segmentation.py", "test_load.py", True),  # by several imports
        ("hgmem/systems/hypermem/recipes.py", "test_text.py", True),  # it starts a process, which may load anything
        ("tests/unit/test_load.py", "test_load.py", True),
        ("tests/unit/test_load.py", "test_text.py", False),
    ],
)
def test_a_file_runs_if_its_imports_reach_what_changed(
    affected: Affected, changed: str, file: str, *, runs: bool
) -> None:
    assert affected.reaches(HERE / file, {changed}) is runs


def test_the_package_alone_is_known_by_its_modules(affected: Affected) -> None:
    assert affected.module("hgmem/client/__init__.py") == "hgmem.client"
    assert [affected.module(path) for path in ("hgmem/settings.toml", "benchmarks/bench.py", "hgmem/gone.py")] == [
        ""
    ] * 3
