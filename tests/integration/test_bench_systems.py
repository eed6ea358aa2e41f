"""The compared systems of the benchmarks have their own processes and environments."""

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_graph import write

from hgmem.errors import UsageError

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from environments import HERE, SAME, Child, ChildError, Unsupported, environment, peers, python, settings
from graphs import Found, load, steps
from nearest import recall, wanted

FAKE = """
import os, sys, time
from graphs import Found, UnsupportedError

class System:
    def open(self, place):
        print("said to nobody")
        return {"fake": "1", "python": sys.version, "seen": " ".join(sorted(os.environ)), "at": os.getcwd()}

    def write(self, graph, corpus):
        if corpus == "broken":
            raise ValueError("no such corpus")
        if corpus == "gone":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(3)
        if corpus == "slow":
            time.sleep(60)

        def written():
            self.graph = graph
        return written

    def step(self, step):
        if step.local:
            raise UnsupportedError("it looks anywhere alone")
        return lambda: Found(
            entities=tuple(names[0] for names in step.memory), relations=len(step.queries),
            chunks=(self.graph.chunks[0]["id"],),
        )

    def close(self):
        pass
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph."""
    folder = tmp_path_factory.mktemp("graph")
    write(folder)
    return folder


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Child]:
    """A fake system in its own process."""
    with served(FAKE, tmp_path, name="fake") as child:
        yield child


def served(code: str, folder: Path, *, name: str) -> Child:
    """Return a system with this code in its own process, served from a copy of the real server code."""
    (folder / "systems").mkdir()
    (folder / "systems" / "__init__.py").touch()
    (folder / "systems" / f"{name}.py").write_text(code)
    for file in ("serve.py", "graphs.py"):
        (folder / file).write_text((HERE / file).read_text())
    return Child(name, python=Path(sys.executable), benchmarks=folder)


def running(child: Child) -> bool:
    return child._process.poll() is None


def test_a_system_answers_from_its_own_process(fake: Child, graph: Path) -> None:
    opened = fake.ask("open", uri="bolt://nowhere")
    written = fake.ask("write", folder=str(graph), corpus="mine", copies=[0, 3])
    ready = fake.ask("ready", folder=str(graph), corpus="mine", size=2, steps=3, seed=1, points=4)
    found = fake.ask("retrieve", at=2)

    assert opened["python"] == sys.version
    assert len(written["seconds"]) == 2
    assert written["megabytes_at_most"] > 1
    assert ready == 3
    (_, _, step) = steps(graph, corpus="mine", size=2, steps=3, seed=1, points=4)
    assert found["entities"] == [names[0] for names in step.memory]
    assert (len(found["entities"]), found["relations"], found["chunks"]) == (4, 2, ["c0 3"])
    assert found["seconds"] > 0
    assert fake.ask("throughput", threads=2, seconds=0.1) > 1
    assert fake.ask("memory")["megabytes"] > 1


def test_the_system_that_the_readme_shows_finds_what_is_nearest_in_all_that_it_was_given(
    graph: Path, tmp_path: Path
) -> None:
    code = (HERE / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    asked = {"folder": str(graph), "corpus": "mine", "size": 3, "steps": 1, "seed": 1}
    with served(code, tmp_path, name="dense") as child:
        child.ask("open", uri="bolt://nowhere")
        child.ask("write", folder=str(graph), corpus="mine", copies=[0, 1])
        child.ask("ready", **asked)
        found = child.ask("retrieve", at=0)
        beside = child.ask("ready", **asked, points=1)

    (step,) = steps(graph, corpus="mine", size=3, steps=1, seed=1)
    (nearest,) = wanted([step], [load(graph), load(graph, 1)])
    brought = Found(entities=tuple(found["entities"]), relations=0, chunks=tuple(found["chunks"]))
    assert recall(brought, nearest) == {"entities": 1.0, "chunks": 1.0}
    assert beside == Unsupported("knows no memory")


def test_the_memory_of_a_system_is_its_own_and_not_that_of_whoever_started_it() -> None:
    held = bytearray(os.urandom(1)) * (300 << 20)
    with Child("floor", python=Path(sys.executable)) as child:
        told = child.ask("memory")
    assert len(held) / 2**20 > told["megabytes_at_most"] >= told["megabytes"] > 1


def test_what_a_system_lacks_is_an_answer(fake: Child, graph: Path) -> None:
    fake.ask("open")
    local = {"folder": str(graph), "corpus": "mine", "size": 1, "steps": 1, "seed": 1, "points": 1, "local": True}
    assert fake.ask("ready", **local) == Unsupported("it looks anywhere alone")
    assert fake.ask("ready", **{**local, "local": False}) == 1


def test_a_command_that_fails_raises_with_where_it_failed_and_the_next_one_works(fake: Child, graph: Path) -> None:
    fake.ask("open")
    with pytest.raises(
        ChildError, match=r"(?s)fake failed at 'write': ValueError: no such corpus\n.*fake\.py.*in write"
    ):
        fake.ask("write", folder=str(graph), corpus="broken", copies=[0])
    assert fake.ask("write", folder=str(graph), corpus="mine", copies=[0])["seconds"]


def test_a_process_that_ends_is_told_with_its_last_words(fake: Child, graph: Path) -> None:
    fake.ask("open")
    with pytest.raises(ChildError, match=r"(?s)fake ended before it answered 'write'.*the last words"):
        fake.ask("write", folder=str(graph), corpus="gone", copies=[0])
    with pytest.raises(ChildError, match="ended before it answered 'memory'"):
        fake.ask("memory")


def test_a_command_that_takes_too_long_ends_the_process(fake: Child, graph: Path) -> None:
    fake.ask("open")
    began = time.perf_counter()
    with pytest.raises(ChildError, match=r"took more than 0\.5 s to 'write'"):
        fake.ask("write", limit=0.5, folder=str(graph), corpus="slow", copies=[0])
    assert time.perf_counter() - began < 30
    assert not running(fake)


def test_a_process_ends_with_its_block_and_what_it_wrote_goes(fake: Child) -> None:
    folder = Path(fake.ask("open")["at"])
    assert running(fake)
    assert folder.is_dir()
    fake.close()
    assert not running(fake)
    assert not folder.exists()


def test_a_system_sees_none_of_the_callers_servers_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://precious")
    monkeypatch.setenv("OPENAI_API_KEY", "precious")
    monkeypatch.setenv("HARMLESS", "1")
    seen = request.getfixturevalue("fake").ask("open")["seen"].split()
    assert "HARMLESS" in seen
    assert not {"NEO4J_URI", "OPENAI_API_KEY"} & set(seen)


def wheel(folder: Path, version: str) -> str:
    """Return a package that needs no network: one module with its version."""
    file = folder / f"tiny-{version}-py3-none-any.whl"
    about = f"tiny-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tiny.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return str(file)


def said(python: Path, program: str) -> str:
    return subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_made_once_and_anew_where_it_should_hold_something_else(tmp_path: Path) -> None:
    pytest.importorskip("uv")
    home = tmp_path / "peer"
    made = environment(home, [wheel(tmp_path, "1.0")])
    assert said(made, "import tiny; print(tiny.VERSION)") == "1.0"
    assert said(made, "import importlib.util; print(importlib.util.find_spec('hgmem'))") == "None"

    (home / "kept").touch()
    assert environment(home, [wheel(tmp_path, "1.0")]) == made
    assert (home / "kept").exists()

    environment(home, [wheel(tmp_path, "2.0")])
    assert said(made, "import tiny; print(tiny.VERSION)") == "2.0"
    assert not (home / "kept").exists()


def test_an_environment_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    pytest.importorskip("uv")
    home = tmp_path / "peer"
    with pytest.raises(ChildError, match="uv pip failed"):
        environment(home, [str(tmp_path / "tiny-9.0-py3-none-any.whl")])
    assert said(environment(home, [wheel(tmp_path, "1.0")]), "import tiny; print(tiny.VERSION)") == "1.0"


def test_packages_come_from_where_pip_is_told_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    told = tmp_path / "pip.conf"
    told.write_text("[global]\nindex-url = https://packages.example/simple\n")
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(told))
    assert settings()["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example/simple")
    assert "UV_DEFAULT_INDEX" not in settings()


def test_our_systems_run_by_the_python_that_asks_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    assert python("product", home=tmp_path) == python("floor", home=tmp_path) == Path(sys.executable)
    with pytest.raises(UsageError, match="no system 'graphrags': choose from floor, product, graphrag"):
        python("graphrags", home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_steps_that_are_ready_under_different_names_are_kept_apart(fake: Child, graph: Path) -> None:
    fake.ask("open")
    fake.ask("write", folder=str(graph), corpus="mine", copies=[0])
    for name, size in (("one", 1), ("three", 3)):
        fake.ask("ready", folder=str(graph), as_=name, corpus="mine", size=size, steps=2, seed=1)
    assert [fake.ask("retrieve", as_=name, at=1)["relations"] for name in ("one", "three")] == [1, 3]


def test_a_system_that_reads_what_another_wrote_runs_in_that_ones_environment(tmp_path: Path) -> None:
    pytest.importorskip("uv")
    for name, held in SAME.items():
        assert (HERE / "systems" / f"{name}.py").is_file()
        assert f"`{name}`" in (HERE / "PEERS.md").read_text(encoding="utf-8")
        assert held in peers()


@pytest.mark.parametrize("name", peers())
def test_every_peer_has_an_adapter_that_is_told_about_and_exact_versions(name: str) -> None:
    assert (HERE / "systems" / f"{name}.py").is_file()
    assert f"`{name}`" in (HERE / "PEERS.md").read_text(encoding="utf-8")
    assert [one for one in peers()[name] if one.count("==") != 1] == []
