"""The description of a system, or of a build that systems read, its checks, and configs made of plain values.

Each package in this folder exports one as `SPEC`. Nothing outside a system's package names the system but settings, as
the usual one, and no package but those of systems names a build.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from hgmem.builds.stages import Build, check_names
from hgmem.errors import UsageError
from hgmem.graph.invariants import OwnInvariant
from hgmem.memory.browser.favourites import Favourite, check_captions
from hgmem.memory.stored_memories import Stored
from hgmem.models.llm.task_routing import sampled
from hgmem.models.prompts import prompts_in, read_prompt, shipped_prompts
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.verbs import Verb, check_verbs
from hgmem.values.arguments import Recipe
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory
from hgmem.values.systems import SystemInfo

Config = TypeVar("Config")
Configured = TypeVar("Configured", contravariant=True)
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


class Answering(Protocol[Configured]):
    """How a system answers."""

    def __call__(self, services: Services, question: Question, config: Configured, *, stored: Stored | None) -> Answer:
        """Return the answer, its memory written to Neo4j. `stored` is the memory that the question continues."""


class PassageRanking(Protocol):
    """How a system ranks the chunks behind an answer."""

    def __call__(
        self, services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None
    ) -> Sequence[Chunk]:
        """Return the chunks that an answer from the memory is drawn from, the best first, at most `limit`.

        `settings` are the options that the memory was made with. Without `limit`, there are as many as they say.
        """


class Costing(Protocol[Configured]):
    """How a system estimates what one question takes."""

    def __call__(self, config: Configured, *, settings: Settings) -> tuple[int, int]:
        """Return the most model calls of a question, and how many tokens their prompts have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpec(Generic[Config]):
    """A build of its own, which answers nothing and which systems read, or the part of a system that is no answering.

    - `config`: the frozen dataclass of its options, each with a default.
    - `recipes`: named configs, such as the paper's. Where no recipe is named, the one named `default` is used, or the
      defaults of `config` if there is none.
    - `build`: what is made of a corpus.
    - `memory_tasks`: the tasks that read the corpus for the build or recall it: `HGMEM_MEMORY_MODEL` names their model.
    - `sampling`: the sampling parameters by task that a config asks for, such as greedy decoding, beside the settings'.
    - `invariants`: what holds of its build at any time. `hgmem doctor --corpus` checks them, as `name:invariant`.
    - `prompts`: the folder of its tasks' prompts, for one of another package. Settings that name a task, such as
      `HGMEM_SAMPLING`, then know them.
    - `statements`: the file of its own Cypher statements, for one of another package. `database.run` knows them.
    - `verbs`: what it can do besides answering.
    - `favourites`: queries for people, which `hgmem browser` offers in the guide of the memories that read it.
    """

    name: str
    summary: str
    config: type[Config]
    recipes: Mapping[str, Config] = field(default_factory=dict)
    build: Build[Config] | None = None
    memory_tasks: Sequence[str] = ()
    sampling: Callable[[Config], Mapping[str, Mapping[str, Any]]] = lambda _: {}
    invariants: Sequence[OwnInvariant] = ()
    prompts: Path | None = None
    statements: Path | None = None
    verbs: Sequence[Verb[Any]] = ()
    favourites: Sequence[Favourite] = ()

    @property
    def own_prompts(self) -> Mapping[str, Path]:
        """The files of its own prompts, by task."""
        return prompts_in(self.prompts) if self.prompts else {}

    @property
    def default(self) -> Config:
        """The config that is used where no recipe is named."""
        return self.recipes.get("default") or self.config()

    @property
    def info(self) -> SystemInfo:
        """What callers are told about it."""
        return SystemInfo(
            name=self.name,
            summary=self.summary,
            recipes=tuple(self.recipes),
            verbs=tuple(verb.info for verb in self.verbs),
            default=self.default,
            **self._abilities,
        )

    @property
    def _abilities(self) -> dict[str, Any]:
        return {"answers": False, "builds": (self.name,)}

    def needed(self, config: Config) -> Mapping[str, Any]:
        """Return the builds without which nothing works by this config, by name, each with its config."""
        return {self.name: config} if self.build else {}

    def serving(self, services: Services, config: Config) -> Services:
        """Return services whose model takes the sampling parameters that the config asks for."""
        return replace(services, model=sampled(services.model, self.sampling(config)))

    def configured(
        self, recipe: Recipe, changes: Mapping[str, object], *, before: Mapping[str, Any] | None = None
    ) -> Config:
        """Return the recipe, else the config that was stored `before`, else the default, with options changed by name.

        Raises `UsageError` for an unknown recipe or option.
        """
        chosen = self._recipe(recipe)
        stored = before if chosen is None else None
        chosen = self.default if chosen is None else chosen
        return changed(chosen, self._renamed(chosen, changes), before=stored)

    def _renamed(self, chosen: Config, changes: Mapping[str, object]) -> Mapping[str, object]:
        return changes

    def _recipe(self, chosen: Recipe) -> Config | None:
        if chosen is None or isinstance(chosen, self.config):
            return chosen
        if not self.recipes:
            raise UsageError(f"system {self.name!r} has no recipes: omit recipe= (--recipe), or use another system")
        if not isinstance(chosen, str):
            raise UsageError(
                f"a recipe must be a name or an {self.config.__name__}, not {type(chosen).__name__}: pass single "
                "options as settings="
            )
        if chosen not in self.recipes:
            raise UsageError(f"unknown recipe {chosen!r}: choose one of {', '.join(self.recipes)}")
        return self.recipes[chosen]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec(BuildSpec[Config]):
    """A way of remembering and answering.

    - `passages`: ranks the chunks behind an answer. By default, all that the record's steps retrieved.
    - `continues`: its memories take further questions. `answer` then gets the stored memory.
    - `needs`: the builds without which a config cannot answer, by name, each with its config. By default, its own
      build if it has one.
    - `asked_options`: options of the builds that questions read too, so that one may have another value than the build.
    - `uses`: the names of further builds that a config reads where they are made.
    - `passage_option`: the option of `config` that limits how many chunks are retrieved, if there is one.
    - `steps_option`: the option of `config` that `steps=` sets, if it is not `steps`. Without one, there is one step.
    - `learn_option`: the option of `config` that learns from a question once it is answered, if there is one.
    - `only_conversations`: it answers from conversations alone, so that an evaluation refuses it on other documents.
    - `notes`: what to say with each answer by a config, such as what of the corpus does not fit it.
    - `cost`: what one question takes at most, for estimates. Without it, that is unknown.
    """

    answer: Answering[Config]
    passages: PassageRanking | None = None
    continues: bool = False
    passage_option: str = ""
    steps_option: str = ""
    learn_option: str = ""
    only_conversations: bool = False
    needs: Callable[[Config], Mapping[str, Any]] | None = None
    asked_options: Sequence[str] = ()
    uses: Callable[[Config], Sequence[str]] = lambda _: ()
    notes: Callable[[Services, Config], Sequence[str]] = lambda *_: ()
    cost: Costing[Config] | None = None

    @property
    def _abilities(self) -> dict[str, Any]:
        return {
            "continues": self.continues,
            "passage_option": self.passage_option,
            "builds": (*self.needed(self.default), *self.uses(self.default)),
            "only_conversations": self.only_conversations,
            "learns": bool(self.learn_option),
        }

    def needed(self, config: Config) -> Mapping[str, Any]:
        """Return the builds without which the config cannot answer, by name, each with its config."""
        return BuildSpec.needed(self, config) if self.needs is None else self.needs(config)

    def _renamed(self, chosen: Config, changes: Mapping[str, object]) -> Mapping[str, object]:
        """Return changes with `steps` under the name that the system has for it."""
        if "steps" not in changes or hasattr(chosen, "steps"):
            return changes
        others = {name: value for name, value in changes.items() if name != "steps"}
        return {**others, self.steps_option: changes["steps"]} if self.steps_option else others


AnySpec: TypeAlias = SystemSpec[Any]
AnyBuild: TypeAlias = BuildSpec[Any]


def check_spec(spec: AnyBuild) -> None:
    """Raise an error that says what is wrong with a system or build: its options, prompts, names, verbs or captions."""
    try:
        spec.config()
    except Exception as error:  # another package's code
        raise UsageError(
            f"{spec.config.__name__}() raises {type(error).__name__} ({error}): give each option a default"
        ) from error
    for task, path in spec.own_prompts.items():
        read_prompt(path)
        if task in shipped_prompts():
            raise UsageError(f"hgmem has a task {task!r} already: rename its prompt {path}")
    if spec.build:
        check_names(spec.build)
        check_captions(spec.build.kinds)
    if spec.verbs:
        check_verbs(spec.verbs)


def changed(config: Config, changes: Mapping[str, object], *, before: Mapping[str, Any] | None = None) -> Config:
    """Return a config (a dataclass) with options changed by name, such as `retrieval.hops`. Text is converted.

    Plain values that were stored `before` replace those of the config. They are checked once they are changed.
    """
    values: dict[str, Any] = asdict(config) | dict(before or {})  # type: ignore[call-overload]
    for name, value in changes.items():
        *outer, last = name.split(".")
        place = values
        for part in outer:
            place = place.get(part) if isinstance(place.get(part), dict) else {}  # type: ignore[assignment]
        if last not in place or isinstance(place[last], dict):
            raise UsageError(f"unknown recipe option {name!r}: choose from {', '.join(_names(values))}")
        place[last] = _listed(value) if isinstance(place[last], tuple | list) else value
    return loaded(type(config), values)


def loaded(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the config of plain values, such as those that a memory was stored with."""
    try:
        loaded_config: Config = _adapter(kind).validate_python(dict(values))
        return loaded_config
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        what, given = first["msg"].removeprefix("Value error, "), repr(first["input"])
        got = "" if given in what else f", got {given}"
        raise UsageError(f"invalid recipe option {name!r}: {what}{got}") from None


def _listed(value: object) -> object:
    """Return a list that was given as text: as JSON, or with commas."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def _names(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in values.items():
        found += _names(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return found
