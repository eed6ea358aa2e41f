"""Builds of the registry: make, estimate, list and delete them."""

import json
from collections.abc import Sequence
from typing import Any

from hgmem.builds.reading import Reading, stored_output
from hgmem.builds.runner import renew_derived, run_build
from hgmem.builds.stage_run import Building, Report, stage_key, to_make, unit_digest
from hgmem.builds.stages import Stage
from hgmem.builds.units import Unit
from hgmem.errors import UsageError
from hgmem.graph.builds import BUILDING, UNFINISHED, find_build, find_builds, units_of_stage
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import Runner
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import read_prompt
from hgmem.services import Services, known_corpus, ready_corpus, watched
from hgmem.systems.registry import describe, installed, room
from hgmem.text.tokens import count
from hgmem.values.arguments import ARGUMENTS, BuildOptions, check
from hgmem.values.built import OwnNames
from hgmem.values.reports import BuildPlan, BuildReport, BuildStatus, StagePlan


@watched("build")
def make_build(services: Services, name: str, options: BuildOptions, *, report: Report) -> BuildReport:
    """Make a build, and return what was done."""
    retry_failed = options.get("retry_failed", False)
    building = _building(services, name, options)
    services = room(name).serving(services, building.config)
    return run_build(services, building, retry_failed=retry_failed, report=report)


def estimate_build(services: Services, name: str, options: BuildOptions) -> BuildPlan:
    """Estimate the work and the maximum cost of `make_build`, without writing.

    A stage is listed exactly if the stages before it have nothing to make. Else its numbers are upper bounds.
    """
    building, retry_failed = _building(services, name, options), options.get("retry_failed", False)
    ready_corpus(services)
    reading = Reading(services=services, system=building.system)
    plans: list[StagePlan] = []
    numbers: dict[str, int] = {}
    last = len(reading.chunks())
    for stage in building.build.stages:
        if all(plan.listed and not plan.units for plan in plans):
            plan, last = _listed(reading, building, stage, retry_failed=retry_failed)
        else:
            last = stage.most_units(numbers, building.config) if stage.most_units else last
            calls = last * _calls(services, building, stage, last)
            each = stage.prompt_tokens
            tokens = calls * (each(building.config) if callable(each) else each)
            plan = StagePlan(stage=stage.name, units=last, calls=calls, prompt_tokens=tokens, listed=False)
        numbers[stage.name] = last
        plans.append(plan)
    calls = sum(plan.calls for plan in plans)
    return BuildPlan(
        system=building.system,
        stages=tuple(plans),
        completion_tokens_at_most=calls * services.settings.max_tokens,
    )


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


def _listed(reading: Reading, building: Building, stage: Stage[Any], *, retry_failed: bool) -> tuple[StagePlan, int]:
    """Return the plan of a stage whose units are known, and their number."""
    services, common = reading.services, stage_key(reading.services, stage, building.settings)
    stored = units_of_stage(services.database, corpus=services.corpus, system=building.system, stage=stage.name)
    outputs = {key: output for key, unit in stored.items() if (output := stored_output(unit)) is not None}
    units = {unit.key: unit for unit in stage.units(reading, building.config)}
    todo: dict[str, Unit] = {}
    for key, unit in units.items():
        digest = unit_digest(common, unit, before=[outputs[each] for each in unit.after if each in outputs])
        if to_make(stored.get(key), digest, retry_failed=retry_failed) or not todo.keys().isdisjoint(unit.after):
            todo[key] = unit
    each = _calls(services, building, stage, len(units))
    prompts = [read_prompt(path) for path in stage.prompts]
    around = sum(count(prompt.system) + count(prompt.user) for prompt in prompts)
    tokens = sum(_tokens(unit) * each + around for unit in todo.values()) if each else 0
    plan = StagePlan(stage=stage.name, units=len(todo), calls=len(todo) * each, prompt_tokens=tokens, listed=True)
    return plan, len(units)


def _calls(services: Services, building: Building, stage: Stage[Any], units: int) -> int:
    """Return how many calls of a language model a unit of the stage takes at most, if it has so many units."""
    names = [read_prompt(path).name for path in stage.prompts]
    if all(serving(services.model, name).name == ExtractiveModel.name for name in names):
        return 0
    return stage.calls(building.config, units) if callable(stage.calls) else stage.calls


def _tokens(unit: Unit) -> int:
    rows = sum(count(row.text) for row in unit.rows)
    values = sum(count(str(value)) for value in (*(output.value for output in unit.outputs), *unit.values.values()))
    return sum(chunk.tokens for chunk in unit.chunks) + rows + values
