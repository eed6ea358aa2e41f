"""Find systems and builds by name: the packages in this folder, and what other packages register as `hgmem.systems`."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path

import hgmem.systems
from hgmem.errors import GraphError, HGMemError, UsageError
from hgmem.graph.statements import Statement, add, parse
from hgmem.models.prompts import shipped_prompts
from hgmem.systems.spec import AnyBuild, AnySpec, BuildSpec, SystemSpec, check_spec
from hgmem.values.systems import SystemInfo

GROUP = "hgmem.systems"  # the entry points of other packages


def system(name: str) -> AnySpec:
    """Return the system of this name. Raises `UsageError` if it cannot be used, or answers nothing."""
    spec = room(name, known=[one.name for one in systems()] if name not in _loaders() else ())
    if not isinstance(spec, SystemSpec):
        raise UsageError(f"{name!r} is a build and answers nothing: choose one of the systems, see `hgmem systems`")
    return spec


def room(name: str, *, known: Sequence[str] = ()) -> AnyBuild:
    """Return the system or build of this name, its own statements taken in. Raises `UsageError` if it cannot be used.

    The error for an unknown name lists those that are `known`, by default all.
    """
    loaders = _loaders()
    if name not in loaders:
        raise UsageError(f"unknown system {name!r}: choose one of {', '.join(known or loaders)}")
    try:
        spec = loaders[name]()
    except HGMemError:
        raise
    except Exception as error:  # another package's code
        raise UsageError(
            f"system {name!r} cannot be loaded ({type(error).__name__}: {error}): reinstall or uninstall its package"
        ) from error
    if not isinstance(spec, BuildSpec) or spec.name != name:
        raise UsageError(f"system {name!r} cannot be loaded: its package registers {spec!r}, not its SystemSpec")
    try:
        check_spec(spec)
        if spec.statements:
            add(_parsed(spec.statements))
    except (OSError, ValueError, UsageError, GraphError) as error:
        raise UsageError(f"system {name!r} cannot be loaded: {error}") from error
    return spec


def describe(name: str) -> SystemInfo:
    """Return what callers are told about a system or build, which may not be installed any more."""
    try:
        return room(name).info
    except UsageError as error:
        return SystemInfo(name=name, summary=str(error), installed=False)


def systems() -> tuple[SystemInfo, ...]:
    """Return all systems by name. One that cannot be loaded has the reason as its summary."""
    return tuple(one for name in _loaders() if (one := describe(name)).answers)


def builds() -> tuple[SystemInfo, ...]:
    """Return the builds of their own by name, which systems read."""
    return tuple(one for name in _loaders() if not (one := describe(name)).answers)


def installed() -> tuple[AnyBuild, ...]:
    """Return the systems and builds that can be loaded, by name."""
    return tuple(room(name) for name in _loaders() if describe(name).installed)


def names() -> tuple[str, ...]:
    """Return the names of all systems and builds without loading any."""
    return tuple(_loaders())


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks that a model may be asked, those of other packages' systems included, sorted."""
    return tuple(sorted({*shipped_prompts(), *(task for spec in installed() for task in spec.own_prompts)}))


def memory_tasks() -> tuple[str, ...]:
    """Return the names of the tasks by which systems read a whole corpus and recall it, sorted."""
    return tuple(sorted({task for spec in installed() for task in spec.memory_tasks}))


@cache
def _loaders() -> Mapping[str, Callable[[], object]]:
    """Return what loads each system, sorted by name. A system of hgmem wins over another package's."""
    others = {point.name: point.load for point in entry_points(group=GROUP)}
    ours = {
        package.name: partial(pkgutil.resolve_name, f"{hgmem.systems.__name__}.{package.name}:SPEC")
        for package in pkgutil.iter_modules(hgmem.systems.__path__)
        if package.ispkg
    }
    return dict(sorted((others | ours).items()))


@cache
def _parsed(path: Path) -> tuple[Statement, ...]:
    return tuple(parse(path))
