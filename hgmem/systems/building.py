"""Builds of the registry: make, estimate, list and delete them."""

import json
from collections.abc import Sequence

from hgmem.builds.estimates import plan_build
from hgmem.builds.runner import renew_derived, run_build
from hgmem.builds.stage_run import Building, Report
from hgmem.errors import UsageError
from hgmem.graph.builds import BUILDING, UNFINISHED, find_build, find_builds
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import Runner
from hgmem.services import Services, known_corpus
from hgmem.systems.registry import describe, installed, room
from hgmem.values.arguments import ARGUMENTS, BuildOptions, check
from hgmem.values.built import OwnNames
from hgmem.values.reports import BuildPlan, BuildReport, BuildStatus


def make_build(services: Services, name: str, options: BuildOptions, *, report: Report) -> BuildReport:
    """Make a build, and return what was done."""
    retry_failed = options.get("retry_failed", False)
    building = _building(services, name, options)
    services = room(name).serving(services, building.config)
    return run_build(services, building, retry_failed=retry_failed, report=report)


def estimate_build(services: Services, name: str, options: BuildOptions) -> BuildPlan:
    """Estimate the work and the maximum cost of `make_build`, without writing."""
    retry_failed = options.get("retry_failed", False)
    return plan_build(services, _building(services, name, options), retry_failed=retry_failed)


def build_states(services: Services) -> tuple[BuildStatus, ...]:
    """Return the builds of the corpus by system, those of systems that are not installed as well."""
    timeout = services.settings.claim_timeout
    found = find_builds(services.database, corpus=known_corpus(services).corpus)
    silent = {row.system for row, _, _ in found if row.silent is None or row.silent > timeout}
    return tuple(
        BuildStatus(
            system=row.system,
            status=UNFINISHED if row.status == BUILDING and row.system in silent else row.status,
            model=row.model,
            change=row.change or "",
            settings=json.loads(row.settings),
            units=units,
            rows=rows,
            created_at=row.created_at,
            finished_at=row.finished_at,
        )
        for row, units, rows in found
    )


def renew_vectors(services: Services, writer: Runner) -> None:
    """Make built rows' vectors again that are no embedding of a text. Those of systems without a hook are removed."""
    hooks = {spec.name: spec.build.reembed for spec in installed() if spec.build and spec.build.reembed}
    renew_derived(services, writer, hooks)


def own_names(name: str) -> OwnNames | None:
    """Return the labels and relationship types of a system or build, or None if it is not installed."""
    if not describe(name).installed:
        return None
    build = room(name).build
    kinds = frozenset(kind.name for kind in build.kinds) if build else frozenset[str]()
    return OwnNames(kinds=kinds, relationships=frozenset(build.relationships if build else ()))


def own_invariants() -> dict[str, Sequence[OwnInvariant]]:
    """Return what installed systems promise of their builds, by system."""
    return {spec.name: spec.invariants for spec in installed()}


def _building(services: Services, name: str, options: BuildOptions) -> Building:
    """Return what to make: with the recipe that is named, else as the build was made before, else the default."""
    check({"settings": options.get("settings", {})}, ARGUMENTS)
    spec = room(name)
    stored = find_build(services.database, corpus=services.corpus, system=spec.name)
    before = json.loads(stored.settings) if stored else None
    config = spec.configured(options.get("recipe"), options.get("settings") or {}, before=before)
    needed = spec.needed(config)
    if spec.build and name in needed:
        return Building(system=spec.name, build=spec.build, config=config)
    if needed:
        commands = " and ".join(f"`hgmem build {one} --corpus {services.corpus}`" for one in needed)
        raise UsageError(
            f"system {name!r} makes no build of its own with these options: make what it reads with {commands}"
        )
    raise UsageError(f"system {name!r} has no build to make: ask it after `hgmem index`")
