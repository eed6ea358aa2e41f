"""The system that docs/write-a-system.md builds up, in examples/own-system/: built, asked, changed and deleted."""

import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from documented import blocks
from forked import run_hgmem
from test_builds import built as contents

from hgmem import HGMem
from hgmem.systems.registry import _loaders
from hgmem.text.resources import resource
from hgmem.values.inputs import Document

EXAMPLE = resource("examples", "own-system")
PAGE = "docs/write-a-system.md"

HARBOUR = """# The Harbour

The harbour has two piers.

## Cranes

The red crane lifts coal. It was built in 1902.

## Lamps

Every lamp on the pier burns whale oil.
"""
MILL = """# The Mill

The mill grinds rye for the town.

## Wheel

An oak wheel turns the stones.
"""
DOCUMENTS = [
    Document(id="harbour", title="Harbour", text=HARBOUR),
    Document(id="mill", title="Mill", text=MILL),
]
PLAIN = "1. The Ship\n\nIt sailed in May.\n\n1.1 The Crew\n\nSix men signed on.\n\nThe Inquest\n\nNobody spoke.\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Installs the example in this process as `pip install -e` does, and returns a PYTHONPATH for others."""
    about = tmp_path / "headings_system-1.0.dist-info"
    about.mkdir()
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]["hgmem.systems"]
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n", encoding="utf-8")
    lines = ["[hgmem.systems]", *(f"{name} = {target}" for name, target in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for folder in (tmp_path, EXAMPLE):
        monkeypatch.syspath_prepend(folder)
    _loaders.cache_clear()
    yield os.pathsep.join(filter(None, (str(EXAMPLE), str(tmp_path), os.environ.get("PYTHONPATH"))))
    monkeypatch.undo()
    _loaders.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "headings_system"]:
        del sys.modules[name]


@pytest.fixture
def built(packages: str, client: HGMem) -> HGMem:
    """A client on a corpus of two documents and the build of it."""
    client.add(DOCUMENTS, graph=False)
    assert client.build("headings").made == 5
    return client


def outline(client: HGMem) -> list[str]:
    return [line["section"] for line in client.headings.outline()]


def test_an_answer_is_drawn_from_the_chunks_beneath_the_nearest_sections(built: HGMem) -> None:
    answer = built.ask("What does the red crane lift?", system="headings")
    assert "coal" in answer.text
    assert answer.steps[0].strategy == "headings"
    (retrieved,) = answer.steps[0].retrieved
    assert retrieved.built[0].text == "The Harbour › Cranes\nThe red crane lifts coal. It was built in 1902."
    narrow = built.ask("What does the red crane lift?", system="headings", recipe="narrow")
    assert (len(narrow.steps[0].retrieved[0].built), len(narrow.steps[0].retrieved[0].chunks)) == (1, 1)
    whole = built.ask("The Harbour", system="headings", recipe="narrow")
    assert len(whole.steps[0].retrieved[0].chunks) == 3  # its own, and those of the sections below it


def test_the_outline_is_a_method_and_a_command(built: HGMem, packages: str, environment: dict[str, str]) -> None:
    assert outline(built) == ["The Harbour", "  Cranes", "  Lamps", "The Mill", "  Wheel"]
    assert [line["section"] for line in built.headings.outline(depth=1)] == ["The Harbour", "The Mill"]
    done = run_hgmem("headings", "outline", "--corpus", built.corpus, env={**environment, "PYTHONPATH": packages})
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[:3] == [
        ["document", "section", "chunks"],
        ["Harbour", "The", "Harbour", "1"],
        ["Harbour", "Cranes", "1"],
    ]
    assert "  Cranes" in done.stdout


def test_a_changed_heading_makes_its_section_alone_anew(built: HGMem) -> None:
    built.add(Document(id="harbour", title="Harbour", text=HARBOUR.replace("## Lamps", "## Lanterns")), graph=False)
    again = built.build("headings")
    assert (again.made, again.unchanged, again.deleted) == (1, 4, 1)
    assert outline(built) == ["The Harbour", "  Cranes", "  Lanterns", "The Mill", "  Wheel"]
    assert built.build("headings").made == 0
    assert built.check().findings == ()


def test_sections_keep_their_place_when_the_text_above_them_changes(built: HGMem) -> None:
    built.add(Document(id="harbour", title="Harbour", text=HARBOUR.replace("two piers", "three piers")), graph=False)
    assert built.build("headings").unchanged == 2  # those of the other document
    followed = contents(built)
    built.delete(system="headings")
    built.build("headings")
    assert contents(built) == followed


def test_a_deleted_document_takes_its_sections_along(built: HGMem) -> None:
    built.delete(document="harbour")
    assert outline(built) == ["The Mill", "  Wheel"]
    assert built.check().findings == ()
    assert (built.build("headings").made, outline(built)) == (0, ["The Mill", "  Wheel"])


def test_numbered_and_short_lines_are_headings_where_there_is_no_markdown(packages: str, client: HGMem) -> None:
    client.add([Document(id="a", title="A", text=PLAIN), Document(id="b", title="B", text="No heading.")], graph=False)
    client.build("headings")
    assert outline(client) == ["1. The Ship", "  1.1 The Crew", "The Inquest", "B"]


def test_the_documented_code_is_that_of_the_example() -> None:
    files = [path.read_text(encoding="utf-8") for path in (EXAMPLE / "headings_system").iterdir() if path.is_file()]
    shown = [block for block in blocks(PAGE) if block.elsewhere][1:]  # the first is run by test_systems.py
    assert len(shown) == 9
    assert [str(block) for block in shown if not any(block.text.strip() in text for text in files)] == []


def test_the_example_has_fewer_than_150_lines_of_python() -> None:
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLE.rglob("*.py")]
    assert 0 < sum(len(text.splitlines()) for text in texts) < 150
