"""The plan of a run: data sets, systems, seeds, which questions, and limits, read from a TOML file."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hgmem.errors import UsageError
from hgmem.evaluation.formats import EvalQuestion

Choice = Literal["all", "open", "held_back"]
_STRICT = ConfigDict(extra="forbid", frozen=True)
_Count = Annotated[int, Field(ge=1)]


class PlannedData(BaseModel):
    """A data set of a plan. `graph` is imported in place of indexing."""

    model_config = _STRICT
    path: Path
    format: str = "hgmem"
    name: str = ""
    graph: Path | None = None


class PlannedSystem(BaseModel):
    """A system of a plan, with its recipe and single options. `label` is its name in tables."""

    model_config = _STRICT
    name: str
    recipe: str | None = None
    settings: dict[str, Any] = {}
    label: str = ""

    @property
    def shown(self) -> str:
        """The label, by default the name with the recipe and the options."""
        options = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return self.label or " ".join(part for part in (self.name, self.recipe, options) if part)


class Plan(BaseModel):
    """A whole plan. `questions` are all, those open to everybody, or those held back."""

    model_config = _STRICT
    data: Annotated[list[PlannedData], Field(min_length=1)]
    systems: Annotated[list[PlannedSystem], Field(min_length=1)]
    output: Path
    seeds: list[int] = []
    questions: Choice = "all"
    ids: list[str] = []
    limit: _Count | None = None
    max_calls: _Count | None = None
    max_tokens: _Count | None = None

    @property
    def every_seed(self) -> Sequence[int | None]:
        """The seeds of sampling, or None for that of the settings."""
        return tuple(dict.fromkeys(self.seeds)) or (None,)


def read_plan(file: Path) -> Plan:
    """Return the plan in a file. Its paths are relative to the file's folder.

    Raises `UsageError` that names the file and the field.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read plan {str(file)!r}: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"plan {str(file)!r} is not TOML: {error}") from error
    try:
        plan = Plan.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"plan {str(file)!r}: {_first(error)}") from None
    _check_labels(plan, file)
    return _resolved(plan, file.resolve().parent)


def chosen(plan: Plan, questions: Iterable[EvalQuestion], *, name: str) -> tuple[EvalQuestion, ...]:
    """Return the questions of a data set that a plan asks. Raises `UsageError` if there are none."""
    wanted = {"all": (True, False), "open": (False,), "held_back": (True,)}[plan.questions]
    kept = [one for one in questions if one.held_back in wanted and (not plan.ids or one.id in plan.ids)]
    if not kept:
        raise UsageError(f"data set {name!r} has no question that the plan asks: change questions or ids")
    return tuple(kept[: plan.limit])


def check_ids(plan: Plan, known: Iterable[str]) -> None:
    """Raise `UsageError` if the plan names a question that no data set has."""
    missing = sorted(set(plan.ids) - set(known))
    if missing:
        raise UsageError(f"plan: ids: no data set has question {missing[0]!r}: correct or drop it")


def _resolved(plan: Plan, folder: Path) -> Plan:
    data = [
        one.model_copy(update={"path": folder / one.path, "graph": one.graph and folder / one.graph})
        for one in plan.data
    ]
    return plan.model_copy(update={"data": data, "output": folder / plan.output})


def _check_labels(plan: Plan, file: Path) -> None:
    labels = [one.shown for one in plan.systems]
    double = next((label for label in labels if labels.count(label) > 1), None)
    if double is not None:
        raise UsageError(f"plan {str(file)!r}: systems: {double!r} is there twice: give each a label of its own")
    for at, one in enumerate(plan.systems):
        same = next((other for other in plan.systems[:at] if _unlabelled(other) == _unlabelled(one)), None)
        if same is not None:
            names = f"{same.shown!r} and {one.shown!r}"
            raise UsageError(f"plan {str(file)!r}: systems: {names} are the same system and options: drop one of them")


def _unlabelled(system: PlannedSystem) -> PlannedSystem:
    return system.model_copy(update={"label": ""})


def _first(error: ValidationError) -> str:
    """Return the first problem of a plan with its field."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown field: choose from {', '.join(_fields(problem['loc']))}"
    if problem["type"] == "missing":
        return f"{where}: missing: add it"
    return f"{where}: {problem['msg']}, got {problem['input']!r}"


def _fields(where: Sequence[int | str]) -> list[str]:
    """Return the known fields of the table that has an unknown one."""
    if len(where) == 1:
        return list(Plan.model_fields)
    return list(PlannedData.model_fields if where[0] == "data" else PlannedSystem.model_fields)
