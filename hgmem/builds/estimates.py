"""Estimate the work and the maximum cost of a build without writing anything."""

from typing import Any

from hgmem.builds.reading import Reading, stored_output
from hgmem.builds.stage_run import Building, stage_key, to_make, unit_digest
from hgmem.builds.stages import Stage
from hgmem.builds.units import Unit
from hgmem.graph.builds import units_of_stage
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import read_prompt
from hgmem.services import Services, ready_corpus
from hgmem.text.tokens import count
from hgmem.values.reports import BuildPlan, StagePlan


def plan_build(services: Services, building: Building, *, retry_failed: bool = False) -> BuildPlan:
    """Return the cost estimate of a run of a build.

    A stage is listed exactly if the stages before it have nothing to make. Else its numbers are upper bounds.
    """
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
    """Return the tokens of a unit's inputs."""
    rows = sum(count(row.text) for row in unit.rows)
    values = sum(count(str(value)) for value in (*(output.value for output in unit.outputs), *unit.values.values()))
    return sum(chunk.tokens for chunk in unit.chunks) + rows + values
