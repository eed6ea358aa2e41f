"""The systems by name: each room of this package, and what other packages register as `hgmem.systems`."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeAlias

import hgmem.systems
from hgmem.builds.reading import check_built
from hgmem.builds.stages import check_names
from hgmem.errors import GraphError, HGMemError, UsageError
from hgmem.graph.statement_checks import fault
from hgmem.graph.statements import Statement, add, parse
from hgmem.memory.browser.favourites import check_captions, check_favourites
from hgmem.memory.browser.view import Drawing
from hgmem.memory.stored_memories import Stored, load_stored
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import prompts_in, read_prompt, shipped_prompts
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.services import Services, ready_corpus
from hgmem.systems.options import Options, value_of
from hgmem.systems.recorded_passages import recorded_chunks
from hgmem.systems.spec import SystemSpec
from hgmem.systems.verbs import check_verbs
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory
from hgmem.values.reports import QuestionPlan
from hgmem.values.systems import SystemInfo

GROUP = "hgmem.systems"  # the entry points of other packages

Recipe: TypeAlias = object  # a recipe's name, a config of the system, or None
AnySpec: TypeAlias = SystemSpec[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The system and the options that a caller asks for. `system` None: that of the memory, else the default.

    `learn`: the system learns from the question once it is answered.
    """

    system: str | None = None
    recipe: Recipe = None
    changes: Mapping[str, object]
    learn: bool = False


def answer(services: Services, question: Question, asked: Asked) -> Answer:
    """Answer a question by the system that is asked for, else that of the memory, else the default.

    Raises `UsageError` for an unknown system, recipe or option, and for a memory that the system can't continue.
    """
    named = asked.system or (None if question.memory else services.settings.system)
    spec = system(named) if named else None
    if spec and question.memory and not spec.continues:
        raise UsageError(f"a memory of system {spec.name!r} cannot be continued: ask a new question")
    options = options_of(spec, asked) if spec else None
    ready_corpus(services)
    stored = None
    if question.memory:
        stored = _stored(services, question.memory, step=question.at_step)
        spec = _continuing(stored, spec)
        question = question if question.text else replace(question, text=stored.question)
    if spec is None:
        raise AssertionError("a new question has a named system, a continued one that of its memory")
    options = options or options_of(spec, asked)
    question = replace(question, notes=_notes_on_build(services, spec, options))
    return spec.answer(services, question, options, stored=stored)


def memory_passages(services: Services, memory: Memory, *, limit: int | None) -> Sequence[Chunk]:
    """Return the chunks behind an answer from a stored memory, as its system ranks them, the best first.

    Those of a system that is not installed, or ranks none, are all that the memory's steps retrieved.
    """
    stored = _stored(services, memory.uid)
    ranking = system(stored.system).passages if describe(stored.system).installed else None
    if ranking is None:
        return recorded_chunks(services, memory, limit=limit)
    return ranking(services, memory, settings=stored.settings, limit=limit)


def _stored(services: Services, uid: str, *, step: int | None = None) -> Stored:
    return load_stored(services.database, uid, corpus=services.corpus, step=step, owner=services.owner)


def estimate(services: Services, asked: Asked) -> QuestionPlan:
    """Estimate what one question takes at most, without reading or writing anything.

    Raises `UsageError` for an unknown system, recipe or option.
    """
    spec = system(asked.system or services.settings.system)
    config = options_of(spec, asked).applied(spec.config())
    plan = QuestionPlan(system=spec.name, options=asdict(config))
    if serving(services.model, AnswerQuestion.name).name == ExtractiveModel.name:
        return replace(plan, calls=0, prompt_tokens=0, completion_tokens_at_most=0)
    if spec.cost is None:
        return plan
    calls, tokens = spec.cost(config, settings=services.settings)
    replies = calls * services.settings.max_tokens
    return replace(plan, calls=calls, prompt_tokens=tokens, completion_tokens_at_most=replies)


def system(name: str) -> AnySpec:
    """Return the system of this name."""
    known = _loaders()
    if name not in known:
        raise UsageError(f"unknown system {name!r}: choose one of {', '.join(known)}")
    try:
        spec = known[name]()
    except HGMemError:
        raise
    except Exception as error:  # another package's code
        raise UsageError(
            f"system {name!r} cannot be loaded ({type(error).__name__}: {error}): reinstall or uninstall its package"
        ) from error
    if not isinstance(spec, SystemSpec) or spec.name != name:
        raise UsageError(f"system {name!r} cannot be loaded: its package registers {spec!r}, not its SystemSpec")
    _check_config(spec)
    _check_prompts(spec)
    if spec.statements:
        _add_statements(spec.name, spec.statements)
    if spec.build:
        check_names(spec.name, spec.build)
    check_verbs(spec.name, spec.verbs)
    check_captions(spec.name, spec.captions)
    check_favourites(spec.name, spec.favourites)
    return spec


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks that a model may be asked, those of other packages' systems included, sorted."""
    installed = [system(one.name) for one in systems() if one.installed]
    return tuple(sorted({*shipped_prompts(), *(task for spec in installed for task in _own_prompts(spec))}))


def memory_tasks() -> tuple[str, ...]:
    """Return the names of the tasks by which systems read a whole corpus and recall it, sorted."""
    installed = [system(one.name) for one in systems() if one.installed]
    return tuple(sorted({task for spec in installed for task in spec.memory_tasks}))


def describe(name: str) -> SystemInfo:
    """Return what callers are told about a system, which may not be installed any more."""
    try:
        return system(name).info
    except UsageError as error:
        return SystemInfo(name=name, summary=str(error), installed=False)


def systems() -> tuple[SystemInfo, ...]:
    """Return all systems by name. One that cannot be loaded has the reason as its summary."""
    return tuple(describe(name) for name in _loaders())


def drawing(name: str = "") -> Drawing:
    """Return how to draw what systems build, with the favourites of one of them, or of all without a name."""
    specs = [system(one.name) for one in systems() if one.installed]
    own = [(spec.name, one) for spec in specs if name in ("", spec.name) for one in spec.favourites]
    return Drawing(
        captions=tuple(caption for spec in specs for caption in spec.captions),
        favourites=tuple(replace(one, path=Path(f"{of}-{one.path.name}")) for of, one in own),
        system=describe(name) if name else None,
    )


def names() -> tuple[str, ...]:
    """Return the names of all systems without loading any."""
    return tuple(_loaders())


@cache
def _loaders() -> Mapping[str, Callable[[], object]]:
    """Return what loads each system, sorted by name. A room of this package wins over another package's system."""
    rooms = [room.name for room in pkgutil.iter_modules(hgmem.systems.__path__) if room.ispkg]
    others = {point.name: point.load for point in entry_points(group=GROUP)}
    return dict(sorted((others | {name: _room(name) for name in rooms}).items()))


def _room(name: str) -> Callable[[], object]:
    return lambda: import_module(f"{hgmem.systems.__name__}.{name}").SPEC


def _own_prompts(spec: AnySpec) -> Mapping[str, Path]:
    return prompts_in(spec.prompts) if spec.prompts else {}


def _check_config(spec: AnySpec) -> None:
    """Raise `UsageError` if the options have no defaults, which apply where no recipe is named."""
    try:
        spec.config()
    except Exception as error:  # another package's code
        raise UsageError(
            f"system {spec.name!r} cannot be loaded: {spec.config.__name__}() raises {type(error).__name__} ({error}): "
            "give each option a default"
        ) from error


def _check_prompts(spec: AnySpec) -> None:
    """Raise `UsageError` if a prompt cannot be read, or has the name of one of ours."""
    for task, path in _own_prompts(spec).items():
        try:
            read_prompt(path)
        except (OSError, ValueError) as error:
            raise UsageError(f"system {spec.name!r} cannot be loaded: {error}") from error
        if task in shipped_prompts():
            raise UsageError(
                f"system {spec.name!r} cannot be loaded: hgmem has a task {task!r} already: rename its prompt {path}"
            )


def _add_statements(system: str, path: Path) -> None:
    """Take in a system's statements. Raises `UsageError` if one cannot be read, has a name of ours, or is refused."""
    try:
        found = _parsed(path)
        for statement in found:
            if why := fault(statement):
                raise GraphError(f"{path.name}: statement {statement.name!r}: {why}")
        add(found)
    except (OSError, ValueError, GraphError) as error:
        raise UsageError(f"system {system!r} cannot be loaded: {error}") from error


@cache
def _parsed(path: Path) -> tuple[Statement, ...]:
    return tuple(parse(path))


def _notes_on_build(services: Services, spec: AnySpec, options: Options[Any]) -> tuple[str, ...]:
    """Return what to say of the build that the answer comes from. Raises `UsageError` if it was never made."""
    if spec.build is None:
        return ()
    config = options.applied(spec.config())
    if not spec.needs_build(config):
        return ()
    names = {name for stage in spec.build.stages for name in stage.settings}
    given = [name for name in options.changes if name.partition(".")[0] in names]
    return check_built(services, spec.name, asked={name: value_of(config, name) for name in given})


def options_of(spec: AnySpec, asked: Asked) -> Options[Any]:
    """Return the options that are asked for. Raises `UsageError` for an unknown recipe."""
    if asked.learn and not spec.learn_option:
        raise UsageError(f"system {spec.name!r} does not learn from questions: omit learn= (--learn), or use another")
    learning = {spec.learn_option: True} if asked.learn else {}
    return Options(recipe=_recipe(spec, asked.recipe), changes={**_stepping(spec, asked.changes), **learning})


def _stepping(spec: AnySpec, changes: Mapping[str, object]) -> Mapping[str, object]:
    """Return the changes with `steps` under the name that the system has for it. One of a single step has none."""
    if "steps" not in changes or hasattr(spec.config(), "steps"):
        return changes
    others = {name: value for name, value in changes.items() if name != "steps"}
    return {**others, spec.steps_option: changes["steps"]} if spec.steps_option else others


def _recipe(spec: AnySpec, chosen: Recipe) -> Any:
    if chosen is None or isinstance(chosen, spec.config):
        return chosen
    if not spec.recipes:
        raise UsageError(f"system {spec.name!r} has no recipes: omit recipe= (--recipe), or use another system")
    if not isinstance(chosen, str):
        raise UsageError(
            f"a recipe must be a name or an {spec.config.__name__}, not {type(chosen).__name__}: pass single options "
            "as settings="
        )
    if chosen not in spec.recipes:
        raise UsageError(f"unknown recipe {chosen!r}: choose one of {', '.join(spec.recipes)}")
    return spec.recipes[chosen]


def _continuing(stored: Stored, asked: AnySpec | None) -> AnySpec:
    """Return the system that continues a memory: its own."""
    known = describe(stored.system)
    if not known.installed:
        raise UsageError(f"memory {stored.uid!r} cannot be continued: {known.summary}")
    if not known.continues:
        raise UsageError(
            f"memory {stored.uid!r} was made by system {stored.system!r}, which cannot be continued: ask a new question"
        )
    if asked and asked.name != stored.system:
        raise UsageError(
            f"memory {stored.uid!r} was made by system {stored.system!r}, not {asked.name!r}: omit system= (--system) "
            "to continue it, or ask a new question"
        )
    return system(stored.system)
