"""Replay pages that the client and the command make of memories in a real Neo4j."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import fetching
from letters import LETTERS, QUESTION, wanting
from typer.testing import CliRunner, Result

from hgmem import Answer, HGMem
from hgmem.cli import app

Run = Callable[..., Result]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The graph library, downloaded if it is missing, as by a build."""
    if missing := fetching.fetch():
        pytest.skip(missing)


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env=environment)


@pytest.fixture
def asking(open_client: Callable[..., HGMem]) -> HGMem:
    """A client whose model adds points and merges them at each step."""
    client = open_client(model=wanting())
    client.add_graph(LETTERS)
    return client


def drawn(page: str) -> dict[str, Any]:
    """Return the data of a page."""
    data = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.DOTALL)
    assert data
    return dict(json.loads(data[1]))


def living(scene: dict[str, Any], step: int) -> set[str]:
    return {one["uid"] for one in scene["points"] if one["born"] <= step and (not one["died"] or one["died"] > step)}


def test_each_step_is_drawn_as_memory_was_then(asking: HGMem) -> None:
    answer = asking.ask(QUESTION, steps=3)
    scene = drawn(asking.replay(answer.memory))
    for step in (1, 2, 3):
        was = asking.memory(answer.memory, step=step)
        assert living(scene, step) == {point.uid for point in was.points}
        told = scene["steps"][step - 1]
        assert [one["text"] for one in told["subqueries"]] == [one.subquery.text for one in was.steps[-1].retrieved]
        assert [one["kind"] for one in told["operations"]] == [one.kind for one in was.steps[-1].operations]
    merged = [one for one in scene["points"] if one["kind"] == "merge"]
    assert [len(one["parts"]) for one in merged] == [2]
    assert merged[-1]["uid"] in living(scene, 3)
    assert [one["quote"] for one in scene["answers"][0]["citations"]] == [one.quote for one in answer.citations]
    assert {one["chunk"] for one in scene["answers"][0]["citations"]} <= set(scene["chunks"])


def test_a_memory_that_went_on_is_one_story_with_two_answers(asking: HGMem) -> None:
    first = asking.ask(QUESTION, steps=2)
    asking.ask("And who bought a boat?", memory=first.memory, steps=1)
    scene = drawn(asyncio.run(asking.areplay(first.memory)))
    assert [one["number"] for one in scene["steps"]] == [1, 2, 3]
    assert [one["question"] for one in scene["answers"]] == [QUESTION, "And who bought a boat?"]
    assert [one["step"] for one in scene["answers"]] == [2, 3]


def test_what_was_deleted_since_is_missing_and_nothing_else(asking: HGMem) -> None:
    answer = asking.ask(QUESTION, steps=2)
    before = len(drawn(asking.replay(answer.memory))["points"])
    asking.delete(document="letters")
    scene = drawn(asking.replay(answer.memory))
    assert (scene["chunks"], len(scene["points"])) == ({}, before)
    assert all(one["quote"] and one["withdrawn"] for one in scene["answers"][0]["citations"])


@pytest.fixture
def answer(client: HGMem) -> Answer:
    """An answer of the extractive model."""
    client.add_graph(LETTERS)
    return client.ask(QUESTION, steps=2)


def test_the_command_writes_a_page_and_replaces_none_unasked(hgmem: Run, answer: Answer) -> None:
    done = hgmem("memory", "export", answer.memory, "--html", "memory.html")
    assert (done.exit_code, done.stderr) == (0, "")
    assert drawn(Path("memory.html").read_text(encoding="utf-8"))["memory"] == answer.memory

    Path("memory.html").write_text("mine")
    done = hgmem("memory", "export", answer.memory, "--html", "memory.html")
    assert done.exit_code == 1
    assert "'memory.html' exists" in done.stderr
    assert Path("memory.html").read_text() == "mine"
    assert hgmem("memory", "export", answer.memory, "--html", "memory.html", "--force").exit_code == 0
    assert Path("memory.html").read_text() != "mine"


@pytest.mark.parametrize(
    ("uid", "file", "part"),
    [
        ("m-nowhere", "memory.html", "'m-nowhere'"),
        ("", ".", "is a folder"),
        ("", "none/memory.html", "cannot write"),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_nothing(
    hgmem: Run, answer: Answer, uid: str, file: str, part: str
) -> None:
    done = hgmem("memory", "export", uid or answer.memory, "--html", file)
    assert done.exit_code != 0
    assert part in done.stderr
    assert list(Path().iterdir()) == []
