"""MemoRAG's verbs and options on the command line."""

import json
from collections.abc import Callable, Mapping

import pytest
from test_gists import SMALL, pyramid
from typer.testing import CliRunner

from hgmem import HGMem
from hgmem.cli import app

__all__ = ["pyramid"]

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def hgmem(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process, and returns what it prints and its notes."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[str, str]:
        done = CliRunner().invoke(app, arguments, env=dict(environment))
        assert done.exit_code == 0, done.output
        return done.stdout, done.stderr

    return run


def test_a_summary_is_printed_like_an_answer(pyramid: HGMem, hgmem: Run) -> None:
    given = ("memorag", "summarise", "--theme", "anchors", "--where", "kind=Arbor", "-c", pyramid.corpus)
    found = json.loads(hgmem(*given, "--json")[0])
    assert found.keys() == {"text", "citations", "memory", "notes"}
    shown, _ = hgmem(*given)
    lines = shown.splitlines()
    assert " ".join(shown.split()).startswith(" ".join(found["text"].split()))
    for one in found["citations"]:
        (line,) = [line for line in lines if line.startswith(f"[{one['marker']}] {one['title']} (")]
        assert " ".join(one["quote"].split())[:40] in line
    assert not any(line.startswith(("text:", "citations:", "notes:")) or "{" in line for line in lines)
    assert lines[-1].startswith("memory ")


def test_an_option_of_the_build_that_a_question_changes_is_noted(pyramid: HGMem, hgmem: Run) -> None:
    asked = ("ask", "What was sold?", "--system", "memorag", "-c", pyramid.corpus)
    shown, _ = hgmem(*asked, "--set", "ratio=9", "--set", "hits=2")
    assert (
        f"note: ratio=9 is read when building, and the build has ratio=4: `hgmem build gists --corpus "
        f"{pyramid.corpus} --set ratio=9` makes it anew"
    ) in " ".join(shown.split())
    same = ("--set", f"ratio={SMALL['ratio']}", "--set", "memory_tokens=300")
    assert json.loads(hgmem(*asked, *same, "--json")[0])["notes"] == []


def test_a_dry_run_lists_stages_with_something_to_make(pyramid: HGMem, hgmem: Run) -> None:
    planned = ("build", "gists", "-c", pyramid.corpus, "--dry-run")
    assert hgmem(*planned)[0] == "0 units to make, no model calls\n"
    pyramid.delete(document="Clay")
    lines = hgmem(*planned)[0].splitlines()
    assert lines[0].startswith("level 1: 1 unit,")
    assert not any(" 0 units" in line for line in lines)
    assert len(json.loads(hgmem(*planned, "--json")[0])["stages"]) == 8
