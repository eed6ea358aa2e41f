import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from histories import fetching, history

from hgmem.errors import UsageError
from hgmem.memory.replay import page as library
from hgmem.memory.replay.page import _MODULE, COLOURS, PAGES, PASSAGE, PROGRAM, page, scene

MOST_LINES = 300  # of a file
HOSTILE = "</script><script>alert(1)</script><!-- ]]> \u2028 {{library}} \" ' & <img src=x onerror=alert(2)>"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library of one line instead of the one that a build downloads."""
    files = {fetching.PROGRAM: b"var cytoscape = 1;", fetching.LICENCE: b"Do -- as you like."}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    digests = {name: fetching._digest(data) for name, data in files.items()}
    described = tmp_path / "library.json"
    described.write_text(json.dumps({"name": "cytoscape", "version": "0", "files": digests}))
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(library, "LIBRARY", described)


def test_a_scene_has_every_point_with_what_became_of_it() -> None:
    past = history(points=30, steps=3)
    drawn = scene(past)
    assert [point["uid"] for point in drawn["points"]] == [one.point.uid for one in past.points]
    kinds = {point["kind"] for point in drawn["points"]}
    assert kinds == {"insert", "revise", "merge"}
    by_uid = {point["uid"]: point for point in drawn["points"]}
    for point in drawn["points"]:
        assert all(by_uid[part]["died"] == point["born"] for part in point["parts"])
        assert bool(point["parts"]) == (point["kind"] != "insert")
        assert set(point["entities"]) <= set(drawn["entities"])
        assert set(point["chunks"]) <= set(drawn["chunks"])
    assert [step["number"] for step in drawn["steps"]] == [1, 2, 3]
    assert drawn["answers"][0]["citations"][0]["quote"] == "Passage 1."


@pytest.mark.parametrize("points", [30, 2])
def test_usual_types_have_one_colour_in_every_memory_and_no_two_types_the_same(points: int) -> None:
    colours = {one["type"]: one["colour"] for one in scene(history(points=points))["entities"].values()}
    assert (colours["person"], colours["place"], colours["event"]) == (1, 3, 4)
    assert {colours["vessel"], colours["paper"]} == {COLOURS, COLOURS - 1}


def test_long_chunks_are_shortened() -> None:
    drawn = scene(history(text="word " * PASSAGE))
    assert all(len(chunk["text"]) <= PASSAGE + 2 for chunk in drawn["chunks"].values())


@pytest.mark.usefixtures("built")
def test_text_of_documents_stays_data() -> None:
    drawn = scene(history(text=HOSTILE))
    text = page(drawn)
    assert text.count("<script") == text.count("</script>") == 3
    assert text.count("<!--") == 1
    assert "{{" not in text.replace("{{library}}", "")
    data = re.search(r'<script type="application/json" id="scene">(.*?)</script>', text, re.DOTALL)
    assert data
    assert json.loads(data[1]) == json.loads(json.dumps(drawn))
    assert "\u2028" not in data[1]
    assert "Do - - as you like." in text


@pytest.mark.usefixtures("built")
def test_nothing_is_loaded_from_anywhere() -> None:
    text = page(scene(history()))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert not re.search(r"""(?:src|href)=["']?https?:""", text)


def test_the_pages_are_put_together_from_short_files() -> None:
    files = {path.relative_to(PAGES).as_posix(): path.read_text(encoding="utf-8") for path in PAGES.glob("*/*.js")}
    files = {name: text for name, text in files.items() if not name.startswith("library/")}
    assert {name for name in files if not name.startswith("service/")} == set(PROGRAM)
    assert {name for name, text in files.items() if len(text.splitlines()) > MOST_LINES or text[:3] != "// "} == set()


@pytest.mark.usefixtures("built")
def test_the_policy_lets_the_whole_program_run_and_nothing_else() -> None:
    text = page(scene(history()))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert re.findall(r"'sha256-(.*?)'", text.partition(">")[2].partition("</head>")[0]) == hashes
    assert all(_MODULE.sub("", (PAGES / name).read_text(encoding="utf-8")) in scripts[1] for name in PROGRAM)
    assert not re.search(r"^(?:import|export)\b", scripts[1], re.MULTILINE)


def test_a_module_of_the_replay_declares_what_no_other_does() -> None:
    declared = [
        name
        for path in PROGRAM
        for name in re.findall(r"^(?:export )?const (\w+)", (PAGES / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert sorted(declared) == sorted(set(declared))


def test_without_the_library_one_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    with pytest.raises(UsageError, match=r"run `python replay_library\.py` in a checkout"):
        library.library()


def test_another_file_in_its_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in fetching.FILES:
        (tmp_path / name).write_bytes(b"alert(1)")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    with pytest.raises(UsageError, match="does not match cytoscape"):
        library.library()


def _command(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_fetch_without_tools_says_what_it_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = fetching.fetch(tmp_path / "library")
    assert "npm: not found" in said
    assert "mvn: not found" in said
    assert not (tmp_path / "library").exists()


def test_a_fetch_that_fails_or_brings_something_else_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bin_ = tmp_path / "bin"
    _command(bin_, "npm", "echo 'no such registry' >&2; exit 1")
    _command(bin_, "mvn", "/bin/echo broken > cytoscape-3.33.1.jar")
    monkeypatch.setenv("PATH", str(bin_))
    said = fetching.fetch(tmp_path / "library")
    assert "npm: no such registry" in said
    assert "mvn: File is not a zip file" in said
    assert not (tmp_path / "library").exists()
