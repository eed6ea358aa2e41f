"""`pytest --affected`: only the tests that reach, by imports, a file that changed since such a run last passed.

Contract tests always run, and everything does where anything but a module of hgmem or a test changed.
"""

import ast
import hashlib
import json
import subprocess
from collections.abc import Iterator, Set
from functools import cached_property
from pathlib import Path

import pytest

import hgmem

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"
PASSED = ROOT / ".pytest_cache" / "passed.json"  # the hash of each file, as in the last run that passed
FEW = 12  # files of unit tests that run in this process
ARGUMENTS = ["tests/contract", "tests/unit"]  # end the command whose success is kept: `make quick` without ARGS
STARTING = {"subprocess", "importlib"}  # what a file reaches that imports these cannot be read: its tests always run
# These load others by their names: all modules that begin so.
LOADED = {
    "hgmem.cli.front": "hgmem.cli.",
    "hgmem.sources.files.converter_process": "hgmem.sources.files.",
    "hgmem.systems.registry": "hgmem.systems.",
}


class Affected:
    """The plug-in. `changed` holds the paths, from the root, of files that differ from the last run that passed."""

    def __init__(self) -> None:
        self.files = dict(hashed_files())
        before = json.loads(PASSED.read_text(encoding="utf-8")) if PASSED.exists() else {}
        self.changed = {path for path, _ in self.files.items() ^ before.items()}

    @cached_property
    def modules(self) -> dict[str, set[str]]:
        """Modules of hgmem, each with itself and all that it reaches."""
        import grimp

        graph = grimp.build_graph("hgmem")
        for importer, beginning in LOADED.items():
            for name in graph.modules:
                if name.startswith(beginning) and name != importer:
                    graph.add_import(importer=importer, imported=name)
        return {name: {name} | graph.find_upstream_modules(name) for name in graph.modules}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a file of unit tests that nothing of what changed is reached from."""
        is_unit = collection_path.parent == UNIT and collection_path.name.startswith("test_")
        return True if is_unit and collection_path not in self.chosen else None

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_auto_num_workers(self) -> int | None:
        """Start no processes for few files: each would read the whole package for the contract tests."""
        return 0 if len(self.chosen) <= FEW else None

    @cached_property
    def chosen(self) -> set[Path]:
        """The files of unit tests that run."""
        known = {path for path in self.changed if path.startswith("tests/unit/test_") or self.module(path)}
        return {file for file in UNIT.glob("test_*.py") if known != self.changed or self.reaches(file, known)}

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Keep what passed: as it was when the run began, and only if no further options could leave anything out."""
        whole = list(session.config.invocation_params.args[-len(ARGUMENTS) :]) == ARGUMENTS
        if exitstatus == 0 and whole and not hasattr(session.config, "workerinput"):
            PASSED.parent.mkdir(exist_ok=True)
            PASSED.write_text(json.dumps(self.files), encoding="utf-8")

    def reaches(self, file: Path, changed: Set[str]) -> bool:
        """Whether the test file is one that changed, reaches one, or reaches what imports do not tell."""
        path = file.relative_to(ROOT).as_posix()
        names = set(imported_names(file, set()))
        reached = set().union(*(self.modules.get(name, set()) for name in names))
        modules = {self.module(path) for path in changed} - {""}
        return path in changed or (bool(modules) and bool(names & STARTING)) or not reached.isdisjoint(modules)

    def module(self, path: str) -> str:
        """The name of the module of hgmem at this path; '' if there is none."""
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return name if path.endswith(".py") and name in self.modules else ""


def hashed_files() -> Iterator[tuple[str, str]]:
    """Every file that git keeps or would keep, as (path from the root, hash of its bytes)."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for path in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
        if (ROOT / path).is_file():
            yield path, hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def imported_names(file: Path, seen: set[Path]) -> Iterator[str]:
    """Names of modules and of what is imported from them, here and in the tests' own modules that the file imports."""
    seen.add(file)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            yield name
            home = hgmem._HOMES.get(name.removeprefix("hgmem."))
            yield f"hgmem.{home}" if home else name
            package = name.partition(".")[0]
            for own in (ROOT / "tests" / f"{package}.py", file.with_name(f"{package}.py")):
                if own.is_file() and own not in seen:
                    yield from imported_names(own, seen)
