"""Tests of the package and of committed files: light imports, completeness, and no paths of any machine."""

import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

import hgmem
from hgmem.memory.replay.page import library
from hgmem.text.resources import resource

CHECKOUT = Path(__file__).resolve().parents[2]
HEAVY = {"neo4j", "numpy", "openai", "sentence_transformers", "torch"}
LIMITS = {"README.md": 150, "CONTRIBUTING.md": 60, "ARCHITECTURE.md": 120}
LOCKS = {
    "Pipfile.lock",
    "conda-lock.yml",
    "package-lock.json",
    "pdm.lock",
    "poetry.lock",
    "pylock.toml",
    "uv.lock",
    "yarn.lock",
}
PIN = re.compile(r"[a-z0-9][a-z0-9.-]*==[0-9][0-9a-z.+!]*( ; [^;#]+)?")
# In pieces, so that this file does not contain them.
LAUNCH = "chromium" + ".launch("
ADDRESSES = (
    "pypi" + ".org",
    "files.python" + "hosted.org",
    "repo1" + ".maven.org",
    "repo.maven" + ".apache.org",
    "registry.npm" + "js.org",
    "download.py" + "torch.org",
)
FOLDERS = ("/work" + "/", "/root" + "/")


def python(code: str) -> str:
    """Return the output of a fresh Python process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    """Return the top-level packages that a fresh Python process has imported after the code."""
    ending = "import sys; print(); print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    return set(python(f"{code}\n{ending}").splitlines()[-1].split())


@pytest.fixture(scope="module")
def installed() -> Distribution:
    return distribution("hgmem")


@pytest.fixture(scope="module")
def committed() -> list[Path]:
    """Return the files tracked by git."""
    if not (CHECKOUT / ".git").exists():
        pytest.skip(f"{CHECKOUT} is no checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    paths = [CHECKOUT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_importing_hgmem_loads_nothing_heavy() -> None:
    loaded = loaded_by("import hgmem")
    assert "hgmem" in loaded
    assert loaded & HEAVY == set()


def test_every_public_name_is_there() -> None:
    assert [name for name in hgmem.__all__ if not hasattr(hgmem, name)] == []


def test_the_options_of_a_question_are_a_public_type() -> None:
    assert "filters" in hgmem.AskOptions.__annotations__


def test_the_distribution_says_what_it_is(installed: Distribution) -> None:
    assert installed.version == hgmem.__version__ == "0.1.0"
    assert installed.metadata["License-Expression"] == "Apache-2.0"
    assert installed.metadata["Requires-Python"] == ">=3.11"
    own = [path for path in installed.files or () if ".dist-info/" in path.as_posix()]
    assert [path.name for path in own if path.name == "LICENSE"] == ["LICENSE"]


def test_the_package_is_typed() -> None:
    assert resource("py.typed").parent == Path(hgmem.__file__).parent


def test_the_command_is_an_entry_point(installed: Distribution) -> None:
    commands = {entry.name: entry.value for entry in installed.entry_points if entry.group == "console_scripts"}
    assert commands == {"hgmem": "hgmem.cli:main"}


@pytest.mark.parametrize(
    ("folder", "pattern", "least"),
    [("cypher", "*.cypher", 6), ("docker", "compose.yaml", 1), ("examples", "affair/*", 8), ("examples", "*.json", 1)],
)
def test_the_files_beside_the_code_are_reachable(folder: str, pattern: str, least: int) -> None:
    found = [path for path in resource(folder).glob(pattern) if path.stat().st_size]
    assert len(found) >= least


def test_the_library_of_the_replay_page_came_along_with_its_licence() -> None:
    text, licence = library()
    assert text.startswith("/**")
    assert "Permission is hereby granted" in licence


def test_the_command_explains_itself() -> None:
    command = Path(sys.executable).parent / "hgmem"
    done = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("up", "doctor", "index", "ask")), done.stdout


def test_explaining_the_command_loads_neither_driver_nor_models() -> None:
    code = """
import sys
from importlib.metadata import distribution
sys.argv = ["hgmem", "--help"]
[command] = distribution("hgmem").entry_points.select(group="console_scripts", name="hgmem")
try:
    command.load()()
except SystemExit as end:
    assert not end.code
"""
    assert loaded_by(code) & (HEAVY - {"numpy"}) == set()


def test_no_committed_file_names_a_package_registry_or_a_folder_of_one_machine(committed: list[Path]) -> None:
    found = {
        f"{path.relative_to(CHECKOUT)}: {needle}"
        for path in committed
        for needle in (*ADDRESSES, *FOLDERS)
        if needle.encode() in path.read_bytes()
    }
    assert found == set()


def test_no_lock_file_is_committed(committed: list[Path]) -> None:
    assert [path.name for path in committed if path.name in LOCKS] == []


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_the_documents_stay_short(name: str) -> None:
    path = CHECKOUT / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LIMITS[name]


def test_the_constraints_are_exact_versions_and_nothing_else() -> None:
    path = CHECKOUT / "constraints.txt"
    if not path.exists():
        pytest.skip("no constraints.txt here")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert len(lines) == len(set(lines)) > 50


def test_chromium_is_looked_for_and_started_in_one_place(committed: list[Path]) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in committed if path.suffix == ".py"}
    assert [path.name for path, text in texts.items() if LAUNCH in text] == ["chromium.py"]
