"""The generated tables in docs/ match the code."""

import sys
from pathlib import Path

import pytest

HOOKS = Path(__file__).parents[2] / "docs" / "hooks"

pytestmark = pytest.mark.skipif(not HOOKS.is_dir(), reason="the documents are not in the wheel")


@pytest.mark.parametrize("page", ["reference/cli.md", "reference/settings.md", "reference/graph.md", "algorithm.md"])
def test_a_generated_table_is_up_to_date(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(HOOKS), *sys.path])
    reference = __import__("reference")

    written = (reference.DOCS / page).read_text(encoding="utf-8")

    assert page in reference.PAGES
    assert "<!-- generated: " in written
    assert written == reference.current(page), "run: make reference"


def test_every_option_has_a_meaning_and_no_other_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(HOOKS), *sys.path])
    fields = __import__("fields")

    assert set(fields.OPTIONS) == {name for name, _ in fields._leaves(fields.HGMemConfig())}
