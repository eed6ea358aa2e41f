"""Module paths of earlier versions, kept importable: a path leads to the modules that hold its names now."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_VALUES = ("values.graph_elements", "values.evidence", "values.records", "values.reports", "values.task")

MOVED: Mapping[str, Sequence[str]] = {
    "answer": ("retrieval.answer", "retrieval.citations"),
    "asking": ("client.ask_options",),
    "browser": ("memory.browser",),
    "browser.favourites": ("memory.browser.favourites",),
    "browser.view": ("memory.browser.view",),
    "checking": ("corpus.checking",),
    "checking.promises": ("values.reports", "corpus.checking.findings"),
    "connecting": ("client.connecting",),
    "corpus.index": ("values.reports", "corpus.indexing"),
    "corpus.planning": ("values.reports", "corpus.cost_estimate"),
    "embed": ("models.embedding",),
    "embedders": ("models.embedders",),
    "events": ("values.events",),
    "extract": ("extraction.replies", "extraction.tasks"),
    "inputs": ("values.inputs",),
    "llm": ("models.llm",),
    "model": _VALUES,
    "passages": ("values.records", "client.passages"),
    "plan": ("systems.hgmem.replies", "systems.hgmem.tasks.planning"),
    "resources": ("text.resources",),
    "retrieve": ("retrieval.step_evidence",),
    "systems.recipes": ("systems.hgmem.recipes", "systems.options"),
    "usage": ("values.usage",),
}


class _Finder(MetaPathFinder, Loader):
    """Finds an earlier path and fills its module with the names of the modules that it leads to."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, moved = name.partition(".")
        return ModuleSpec(name, self, is_package=True) if package == "hgmem" and moved in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        homes = [f"hgmem.{home}" for home in MOVED[module.__name__.partition(".")[2]]]
        warnings.warn(f"{module.__name__} moved: import from {' or '.join(homes)}", DeprecationWarning, stacklevel=2)
        module.__getattr__ = lambda name: _found(name, module.__name__, homes)  # type: ignore[method-assign]


def earlier_classes(module: str, *homes: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that is something else now: classes that it held are found in `homes`."""

    def found(name: str) -> Any:
        value = _found(name, module, homes if name[:1].isupper() else ())
        warnings.warn(f"{module}.{name} moved: import it from {' or '.join(homes)}", DeprecationWarning, stacklevel=2)
        return value

    return found


def _found(name: str, module: str, homes: Sequence[str]) -> Any:
    for home in homes:
        holder = import_module(home)
        if not name.startswith("__") and hasattr(holder, name):
            return getattr(holder, name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def keep_importable() -> None:
    """Let the earlier paths be imported, behind every other way of finding a module."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
