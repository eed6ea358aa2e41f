"""Builds of the systems in the registry: make, estimate, list and delete them."""

import json

from hgmem.builds.derived_vectors import renew_derived
from hgmem.builds.estimates import plan_build
from hgmem.builds.runner import remove_build as remove_build
from hgmem.builds.runner import run_build
from hgmem.builds.stage_run import Building, Report
from hgmem.errors import UsageError
from hgmem.graph.builds import BUILDING, UNFINISHED, BuildRow, find_build, find_builds
from hgmem.graph.invariants import OwnInvariants
from hgmem.graph.values import Runner
from hgmem.services import Services, known_corpus
from hgmem.systems.options import changed, loaded
from hgmem.systems.registry import Asked, describe, options_of, system, systems
from hgmem.values.built import OwnNames
from hgmem.values.reports import BuildPlan, BuildReport, BuildStatus


def make_build(
    services: Services, asked: Asked, *, retry_failed: bool = False, report: Report = lambda _: None
) -> BuildReport:
    """Make the build of the system that is asked for, and return what was done."""
    return run_build(services, _building(services, asked), retry_failed=retry_failed, report=report)


def estimate_build(services: Services, asked: Asked, *, retry_failed: bool = False) -> BuildPlan:
    """Estimate the work and the maximum cost of `make_build`, without writing."""
    return plan_build(services, _building(services, asked), retry_failed=retry_failed)


def build_states(services: Services) -> tuple[BuildStatus, ...]:
    """Return the builds of the corpus by system, those of systems that are not installed as well."""
    timeout = services.settings.claim_timeout
    found = find_builds(services.database, corpus=known_corpus(services).corpus)
    return tuple(
        BuildStatus(
            system=row.system,
            status=_status(row, timeout),
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
    specs = [system(one.name) for one in systems() if one.installed]
    hooks = {spec.name: spec.build.reembed for spec in specs if spec.build and spec.build.reembed}
    renew_derived(services, writer, hooks)


def own_names(name: str) -> OwnNames | None:
    """Return the labels and relationship types of a system, or None if it is not installed."""
    if not describe(name).installed:
        return None
    build = system(name).build
    kinds = frozenset(kind.name for kind in build.kinds) if build else frozenset[str]()
    return OwnNames(kinds=kinds, relationships=frozenset(build.relationships if build else ()))


def own_invariants() -> tuple[OwnInvariants, ...]:
    """Return what installed systems promise of their builds, by system."""
    specs = [system(one.name) for one in systems() if one.installed]
    return tuple(OwnInvariants(system=spec.name, invariants=spec.invariants) for spec in specs if spec.invariants)


def _status(row: BuildRow, timeout: float) -> str:
    silent = row.silent is None or row.silent > timeout
    return UNFINISHED if row.status == BUILDING and silent else row.status


def _building(services: Services, asked: Asked) -> Building:
    """Return what to make: with the recipe that is named, else as the build was made before, else the default."""
    spec = system(asked.system or services.settings.system)
    if spec.build is None:
        raise UsageError(f"system {spec.name!r} has no build: ask it after `hgmem index`")
    options = options_of(spec, asked)
    stored = find_build(services.database, corpus=services.corpus, system=spec.name)
    if asked.recipe is None and stored is not None:
        config = changed(loaded(spec.config, json.loads(stored.settings)), asked.changes)
    else:
        config = options.applied(spec.config())
    return Building(system=spec.name, build=spec.build, config=config)
