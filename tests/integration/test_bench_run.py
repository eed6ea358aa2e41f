"""A run of the benchmarks on a tiny graph: tests the reported measurements and files, not speed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forked import run_python
from small_graph import CHUNKS, ENTITIES, RELATIONS, write

from hgmem.local import down
from hgmem.settings import load

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph."""
    folder = tmp_path_factory.mktemp("graph")
    write(folder)
    return folder


def command(graph: Path, out: Path, *workloads: str) -> list[str | Path]:
    run = [sys.executable, BENCHMARKS / "bench.py", "--plan", "tiny", "--graph", graph]
    return [*run, "--out", out, "--only", *workloads]


def bench(graph: Path, out: Path, *workloads: str) -> tuple[dict[str, Any], str, Path]:
    """Run the benchmarks, which may take minutes on a busy machine; return the figures, the Markdown and the folder."""
    subprocess.run(command(graph, out, *workloads), check=True, capture_output=True, timeout=900)
    (folder,) = out.iterdir()
    return json.loads((folder / "figures.json").read_text()), (folder / "figures.md").read_text(), folder


@dataclass(frozen=True, kw_only=True)
class Run:
    """A whole run: its folder, and the figures that were there when the workload W2 had been measured."""

    folder: Path
    meanwhile: list[dict[str, Any]]

    @property
    def figures(self) -> dict[str, Any]:
        return json.loads((self.folder / "figures.json").read_text())


@pytest.fixture(scope="module")
def run(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("run") / "results"
    meanwhile = []
    with subprocess.Popen(
        command(graph, out, "W1", "W2", "W4"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr or ():
            if "W2: steps are retrieved" in line:
                (figures,) = out.glob("*/figures.json")
                meanwhile.append(json.loads(figures.read_text()))
    assert process.returncode == 0
    (folder,) = out.iterdir()
    return Run(folder=folder, meanwhile=meanwhile)


@pytest.mark.slow
def test_a_run_says_what_times_bought_and_leaves_tables_and_plots(run: Run) -> None:
    found = run.figures
    assert found["graph"]["entities"] == ENTITIES
    assert set(found["W1"]["times"]) == {"floor", "product"}
    assert len(found["W2"]) == 8
    for name, case in found["W2"].items():
        for system in ("floor", "product"):
            bought = case["found"][system]
            assert case["times"][system]["median_ms"] > 0
            if "500" not in name:  # memory contains every entity
                assert bought["recall_of_entities"] == 1.0
            assert 0.5 <= bought["recall_of_chunks"] <= 1.0
    assert found["W4"]["16 threads"]["steps_a_second"]["product"] > 0
    text = (run.folder / "figures.md").read_text()
    assert f"A graph is {ENTITIES} entities, {RELATIONS} relations and {CHUNKS} chunks" in text
    assert "peer on Neo4j" not in text  # this plan has none
    assert {path.name for path in run.folder.iterdir()} >= {"steps.png", "throughput.png"}


@pytest.mark.slow
def test_what_is_measured_is_saved_before_the_next_workload_has_run(run: Run) -> None:
    assert [{"W1", "W2", "W4"} & set(found) for found in run.meanwhile] == [{"W1", "W2"}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "W99"], "invalid choice: 'W99' (choose from 'W1', "),
        (["--only"], "--only: expected at least one argument"),
        (["--systems", "floor", "nosuch"], "invalid choice: 'nosuch' (choose from 'floor', 'product', 'graphrag', "),
        (["--systems", "graphrag_broad"], "graphrag_broad reads what graphrag writes: name that too in --systems"),
        (["--text", "FILE/below"], "/file/below: there is no such file"),
        (["--out", "FILE"], "/file: File exists; give another folder by --out"),
        (["--out", "FILE/below"], "/file/below: Not a directory; give another folder by --out"),
    ],
)
def test_what_cannot_be_had_is_said_before_anything_is_measured(options: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = [option.replace("FILE", str(tmp_path / "file")) for option in options]
    done = run_python(BENCHMARKS / "bench.py", *given, env=os.environ)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_growth_is_measured_in_one_corpus_and_in_as_many(graph: Path, tmp_path: Path) -> None:
    found, text, folder = bench(graph, tmp_path / "results", "W3", "W5", "W6")
    assert [row["graphs"] for row in found["W5"]["grown"]] == [1, 2]
    for row in (*found["W5"]["grown"], found["W5"]["spread"]):
        assert set(row["write"]) == set(row["step"]["times"]) == {"floor", "product"}
        assert row["step"]["found"]["product"]["recall_of_entities"] == 1.0
        assert row["question"]["median_ms"] > 0
    assert 0 < found["W6"]["extractive"]["waited_for_embedder"] <= 1
    assert "waited_for" not in found["W6"]["extractive"]
    assert found["W6"]["a call of 0.1 s"]["must"]
    assert found["W6"]["a call of 0.1 s"]["waited_for_model"] > found["W6"]["a call of 0 s"]["waited_for_model"]
    assert (folder / "growth.png").exists()
    assert "a graph a corpus" not in text
    assert f"| {2 * ENTITIES} | 2 | hgmem |" in text


@pytest.mark.long
def test_a_large_corpus_goes_on_where_it_was_killed_and_is_used_again(graph: Path, tmp_path: Path) -> None:
    held = tmp_path / "held"
    command = [
        sys.executable,
        BENCHMARKS / "large.py",
        "--graph",
        graph,
        "--held",
        held,
        "--steps",
        "2",
        "--rounds",
        "1",
    ]
    command += ["--warm", "0", "--heap", "512m", "--pagecache", "128m", "--graphs"]
    try:
        with subprocess.Popen([*command, "4"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
            end = time.monotonic() + 600
            while written(held) < 2 and time.monotonic() < end:
                time.sleep(0.05)
            os.kill(killed.pid, signal.SIGKILL)
        before = written(held)
        assert 2 <= before < 4

        found = json.loads(subprocess.run([*command, "4"], check=True, capture_output=True, timeout=900).stdout)
        assert written(held) == 4
        assert found["graphs"] == 4
        assert [row["graphs"] for row in found["along"]] == [4]
        assert [row["size"] for row in found["sizes"]] == [1, 4]
        assert found["sizes"][-1]["step"]["large"]["found"]["recall_of_entities"] == 1.0
        assert found["sizes"][-1]["bytes"]["vector index: entities, one of them"] > 4 * 384

        lines = progress(held)
        again = json.loads(subprocess.run([*command, "4"], check=True, capture_output=True, timeout=900).stdout)
        assert progress(held)[: len(lines)] == lines
        assert [row["size"] for row in again["sizes"]] == [1, 4]
        assert written(held) == 4
    finally:
        for folder in held.glob("large-*"):
            down(load(data=folder / "neo4j"))


def progress(held: Path) -> list[str]:
    return [line for path in held.glob("large-*/progress.jsonl") for line in path.read_text().splitlines()]


def written(held: Path) -> int:
    return sum('"graph"' in line for line in progress(held))
