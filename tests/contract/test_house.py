"""Tests of the code's conventions, on its syntax trees."""

import ast
import pkgutil
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import hgmem
from hgmem.systems.registry import builds

PACKAGE = Path(hgmem.__file__).parent
ROOT = Path(__file__).parents[2]
MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 50
MEDIAN_LINES_OF_FUNCTIONS = 12
MOST_PARAMETERS = 5
# What others call is read at the call: `f(a, b, c)` at most. What a module calls itself may take one more.
MOST_POSITIONAL = 3
MOST_POSITIONAL_OF_OWN = 4
EMPTY_NAMES = {"base", "common", "helpers", "operate", "utils"}

MOST_WORDS = 25  # length of a docstring's first line

# Functions that may take more parameters, each with its reason.
EXEMPT: dict[str, str] = {
    "settings.Settings.settings_customise_sources": "pydantic-settings calls it with these, by position",
}
# A command's parameters are what a person may type, and Typer reads them from its signature.
COMMANDS = {"command", "callback"}
# So are an endpoint's what a request may have, which FastAPI reads.
ENDPOINTS = {"get", "post", "delete"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A file of the package."""

    name: str
    path: Path
    lines: int
    tree: ast.Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """A function of the package; `name` is its path: `module.Class.function`."""

    name: str
    public: bool
    node: Function

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1

    @property
    def positional(self) -> int:
        named = [*self.node.args.posonlyargs, *self.node.args.args]
        return len([argument for argument in named if argument.arg not in ("self", "cls")])

    @property
    def parameters(self) -> int:
        return self.positional + len(self.node.args.kwonlyargs)

    @property
    def exempt(self) -> bool:
        of_door = {"cli": COMMANDS, "service": ENDPOINTS}.get(self.name.partition(".")[0], set())
        return self.name in EXEMPT or is_decorated(self.node, of_door)


def is_decorated(function: Function, names: set[str]) -> bool:
    called = [each.func for each in function.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Attribute) and each.attr in names for each in called)


def read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    return Module(name=name, path=path, lines=len(text.splitlines()), tree=ast.parse(text))


MODULES = [read(path) for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "examples"]


def definitions(body: ast.AST, name: str, *, public: bool) -> Iterator[tuple[str, bool, ast.AST]]:
    """Classes and functions with their paths, and whether they are public."""
    for node in ast.iter_child_nodes(body):
        if not isinstance(node, Function | ast.ClassDef):
            yield from definitions(node, name, public=public)
            continue
        known = public and (not node.name.startswith("_") or node.name.endswith("__"))
        path = f"{name}.{node.name}".lstrip(".")
        yield path, known, node
        yield from definitions(node, path, public=known and isinstance(node, ast.ClassDef))


def definitions_of(module: Module) -> Iterator[tuple[str, bool, ast.AST]]:
    return definitions(module.tree, module.name, public=True)


DEFINED = [each for module in MODULES for each in definitions_of(module)]
FUNCTIONS = [Defined(name=name, public=known, node=node) for name, known, node in DEFINED if isinstance(node, Function)]


def imported(tree: ast.AST) -> Iterator[str]:
    """Absolute names of all modules imported anywhere in the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def reads_environment(node: ast.AST) -> bool:
    names = {"environ", "environb", "getenv", "getenvb"}
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in names for alias in node.names)
    return (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    )


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 40
    assert len(FUNCTIONS) > 400


def test_files_are_short() -> None:
    assert {module.name: module.lines for module in MODULES if module.lines > MOST_LINES_OF_A_FILE} == {}


def test_functions_are_short() -> None:
    assert {each.name: each.lines for each in FUNCTIONS if each.lines > MOST_LINES_OF_A_FUNCTION} == {}
    assert statistics.median(each.lines for each in FUNCTIONS) <= MEDIAN_LINES_OF_FUNCTIONS


def test_functions_take_few_parameters() -> None:
    many = {each.name: each.parameters for each in FUNCTIONS if each.parameters > MOST_PARAMETERS and not each.exempt}
    assert many == {}


def test_parameters_after_the_first_few_are_named_at_the_call() -> None:
    found = {
        each.name: each.positional
        for each in FUNCTIONS
        if each.positional > (MOST_POSITIONAL if each.public else MOST_POSITIONAL_OF_OWN) and not each.exempt
    }
    assert found == {}


def test_every_exemption_is_still_needed() -> None:
    needy = {each.name for each in FUNCTIONS if each.parameters > MOST_PARAMETERS or each.positional > MOST_POSITIONAL}
    assert set(EXEMPT) - needy == set()


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [module.name for module in MODULES if EMPTY_NAMES & set(module.name.split("."))] == []


def test_what_strangers_may_use_is_documented() -> None:
    files = [module.name or "hgmem" for module in MODULES if not ast.get_docstring(module.tree)]
    silent = [
        name
        for name, known, node in DEFINED
        if known
        and isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("__")
        and not ast.get_docstring(node)
    ]
    assert [*files, *silent] == []


def first_lines(modules: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """First lines of docstrings, each with the path of its owner."""
    for module in modules:
        nodes = [(module.name, module.tree), *((name, node) for name, _, node in definitions_of(module))]
        for name, node in nodes:
            if isinstance(node, ast.Module | ast.ClassDef | Function) and (text := ast.get_docstring(node)):
                yield name, text.splitlines()[0]


def is_one_plain_sentence(line: str) -> bool:
    return ";" not in line and line.endswith((".", ":")) and len(line.split()) <= MOST_WORDS


def test_first_lines_of_docstrings_are_one_plain_sentence() -> None:
    lines = list(first_lines(MODULES))
    assert len(lines) > 1_000
    assert [(name, line) for name, line in lines if not is_one_plain_sentence(line)] == []


@pytest.mark.parametrize(
    "line",
    ["Return this; raise that.", "Return what", "Return " + "one more " * 12 + "word."],
    ids=["two", "half", "long"],
)
def test_a_first_line_that_is_not_one_plain_sentence_is_noticed(line: str) -> None:
    tree = ast.parse(f'"""{line}"""')
    module = Module(name="spoilt", path=Path(), lines=1, tree=tree)
    assert [is_one_plain_sentence(each) for _, each in first_lines([module])] == [False]


def test_only_the_graph_package_imports_neo4j() -> None:
    drivers = [
        module.name
        for module in MODULES
        if any(name.partition(".")[0] == "neo4j" for name in imported(module.tree))
        and not module.name.startswith("graph.")
    ]
    assert drivers == []


ROOMS = sorted(path.parent.name for path in (PACKAGE / "systems").glob("*/__init__.py"))
BUILDS = {one.name for one in builds()}


def room_of(module: str) -> str:
    """The system whose room holds a module, or an empty string."""
    parts = module.removeprefix("hgmem.").split(".")
    return parts[1] if parts[0] == "systems" and len(parts) > 1 and parts[1] in ROOMS else ""


def named_systems(tree: ast.AST) -> Iterator[str]:
    """Names of systems that are compared with something, or passed or set as a system."""
    for node in ast.walk(tree):
        candidates: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            candidates = [node.left, *node.comparators]
        elif isinstance(node, ast.keyword) and node.arg == "system":
            candidates = [node.value]
        elif isinstance(node, ast.Call) and any(
            isinstance(one, ast.Constant) and one.value == "system" for one in node.args
        ):
            candidates = list(node.args)
        elif isinstance(node, ast.arguments):
            named = [*node.args, *node.kwonlyargs]
            if any(one.arg == "system" for one in named):
                candidates = [one for one in (*node.defaults, *node.kw_defaults) if one]
        for one in candidates:
            for part in ast.walk(one):
                if isinstance(part, ast.Constant) and part.value in ROOMS:
                    yield str(part.value)


def test_no_system_is_imported_or_named_outside_its_room() -> None:
    """The default system is one setting, all else goes through the registry. Systems import builds that they read."""
    assert {"hgmem", "naive"} <= set(ROOMS)
    assert {"gists"} <= BUILDS < set(ROOMS)
    for module in MODULES:
        own = room_of(module.name)
        imports = {room_of(one) for one in imported(module.tree)} - {own, ""} - (BUILDS if own else set())
        assert not imports, f"{module.name} imports {imports}"
        if not own:
            assert not list(named_systems(module.tree)), module.name
            assert "naive" not in {node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant)}


@pytest.mark.parametrize(
    "spoilt",
    [
        "if memory.system == 'hgmem': pass",
        "ask(system='naive')",
        "asking.get('system', 'hgmem')",
        "def ask(system='hgmem'): pass",
        "def ask(*, system='naive'): pass",
        "x = name in ('hgmem', 'naive')",
    ],
)
def test_a_system_named_outside_its_room_is_noticed(spoilt: str) -> None:
    assert list(named_systems(ast.parse(spoilt)))


def test_only_the_settings_read_the_environment() -> None:
    readers = [module.name for module in MODULES if any(map(reads_environment, ast.walk(module.tree)))]
    assert set(readers) - {"settings"} == set()


def test_the_public_names_are_sorted() -> None:
    assert list(hgmem.__all__) == sorted(set(hgmem.__all__))


def test_the_public_names_are_those_that_a_type_checker_sees() -> None:
    (checked,) = [node for node in ast.parse(Path(hgmem.__file__).read_text()).body if isinstance(node, ast.If)][:1]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == {name: f"hgmem.{module}" for name, module in hgmem._HOMES.items()}


def missing_names(tree: ast.AST) -> Iterator[str]:
    """Yield what a script imports from the package that is not there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "hgmem":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                try:
                    pkgutil.resolve_name(whole)
                except (ImportError, AttributeError):
                    yield whole


def test_scripts_beside_the_package_import_what_is_there() -> None:
    folders = [ROOT / name for name in ("benchmarks", "docs", "examples", "notebooks")]
    scripts = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(scripts) > 20
    assert [f"{path.name}: {name}" for path in scripts for name in missing_names(ast.parse(path.read_text()))] == []


def test_a_script_that_imports_what_is_gone_is_noticed() -> None:
    script = ast.parse("from hgmem import HGMem, Gone\nfrom hgmem.gone import it\nfrom hgmem.text import identity")
    assert list(missing_names(script)) == ["hgmem.Gone", "hgmem.gone.it"]


@pytest.mark.parametrize(
    "spoilt", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_reading_the_environment_is_noticed(spoilt: str) -> None:
    assert any(map(reads_environment, ast.walk(ast.parse(spoilt))))
