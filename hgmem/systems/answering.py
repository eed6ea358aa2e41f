"""A question to a system, answered or estimated with the caller's options, and the chunks behind an answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from typing import Any

from hgmem.builds.reading import check_built
from hgmem.errors import UsageError
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.memory.stored_memories import Stored, load_stored
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.document_filters import choose, normal
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services, ready_corpus
from hgmem.systems.registry import describe, room, system
from hgmem.systems.spec import AnySpec
from hgmem.values.arguments import AskOptions
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory, Step
from hgmem.values.reports import QuestionPlan


def answer(services: Services, text: str, options: AskOptions) -> Answer:
    """Answer a question by the system that is asked for, else that of the memory, else the default.

    Without a text, the memory's latest question is resumed. Raises `UsageError` for an unknown system, recipe or
    option, and for a memory that the system can't continue.
    """
    memory = options.get("memory")
    named = options.get("system") or (None if memory else services.settings.system)
    spec = system(named) if named else None
    if spec and memory and not spec.continues:
        raise UsageError(f"a memory of system {spec.name!r} cannot be continued: ask a new question")
    # What is unknown is refused before the corpus is read.
    config = _config(services, spec, options) if spec else None
    filters = None if (given := options.get("filters")) is None else normal(given)
    ready_corpus(services)
    stored = None
    if memory:
        stored = load_stored(services, memory, step=options.get("at_step"))
        spec = _continuing(stored, spec)
        config = _config(services, spec, options, before=stored.settings)
    if spec is None:
        raise AssertionError("a new question has a named system, a continued one that of its memory")
    question = Question(
        text=text or (stored.question if stored else ""),
        memory=memory,
        at_step=options.get("at_step"),
        filters=filters,
        steps=options.get("steps"),
        answer=options.get("answer", True),
        answers=services.repeatable.answers,
        notes=(
            *notes_on_builds(services, spec, config, changes=options.get("settings") or {}),
            *spec.notes(services, config),
        ),
    )
    return spec.answer(spec.serving(services, config), question, config, stored=stored)


def estimate(services: Services, options: AskOptions) -> QuestionPlan:
    """Estimate what one question takes at most, without reading or writing anything.

    Raises `UsageError` for an unknown system, recipe or option.
    """
    spec = system(options.get("system") or services.settings.system)
    config = _config(services, spec, options)
    plan = QuestionPlan(system=spec.name, options=asdict(config), builds=spec.needed(config))
    if serving(services.model, AnswerQuestion.name).name == ExtractiveModel.name:
        return replace(plan, calls=0, prompt_tokens=0, completion_tokens_at_most=0)
    if spec.cost is None:
        return plan
    calls, tokens = spec.cost(config, settings=services.settings)
    replies = calls * services.settings.max_tokens
    return replace(plan, calls=calls, prompt_tokens=tokens, completion_tokens_at_most=replies)


def memory_passages(services: Services, memory: Memory, *, limit: int | None) -> Sequence[Chunk]:
    """Return the chunks behind an answer from a stored memory, as its system ranks them, the best first.

    Those of a system that is not installed, or ranks none, are all that the memory's steps retrieved.
    """
    stored = load_stored(services, memory.uid)
    ranking = system(stored.system).passages if describe(stored.system).installed else None
    if ranking is None:
        return recorded_chunks(services, memory, limit=limit)
    return ranking(services, memory, settings=stored.settings, limit=limit)


def latest_steps(memory: Memory) -> list[Step]:
    """Return the steps of the memory's latest question."""
    return [one for one in memory.steps if one.question == memory.steps[-1].question]


def scope_of(services: Services, memory: Memory) -> Scope:
    """Return the scope that the memory's latest question searched."""
    choice = choose(services.database, memory.steps[-1].filters, corpus=services.corpus)
    return Scope(corpus=services.corpus, memory=memory.uid, documents=choice.documents)


def recorded_chunks(services: Services, memory: Memory, *, limit: int | None) -> Sequence[Chunk]:
    """Return the chunks that the latest question's steps retrieved, by the fused ranks of their sub-queries."""
    scope = scope_of(services, memory)
    order = fuse([hit.uid for hit in one.chunks] for step in latest_steps(memory) for one in step.retrieved)
    texts = find_chunks(services.database, corpus=services.corpus, uids=order)
    found = [texts[uid] for uid in order if uid in texts]  # some may have been deleted
    within = found if scope.documents is None else [chunk for chunk in found if chunk.document in scope.documents]
    return within[:limit]


def _config(services: Services, spec: AnySpec, options: AskOptions, *, before: Mapping[str, Any] | None = None) -> Any:
    """Return the config that the options ask for. Without a recipe, a memory keeps the one `before`.

    Raises `UsageError` for an unknown recipe or option, and for `rerank` without a reranker.
    """
    changes = dict(options.get("settings") or {})
    if (steps := options.get("steps")) is not None:
        changes["steps"] = steps
    if options.get("learn"):
        if not spec.learn_option:
            raise UsageError(
                f"system {spec.name!r} does not learn from questions: omit learn= (--learn), or use another"
            )
        changes[spec.learn_option] = True
    config = spec.configured(options.get("recipe"), changes, before=before)
    services.check_rerank(getattr(config, "rerank", 0))
    return config


def notes_on_builds(services: Services, spec: AnySpec, config: Any, *, changes: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what to say of the builds that the answer comes from. Raises `UsageError` if one was never made.

    `changes` are the names of options that a question gives: a note names each that a build was not made with.
    """
    notes: list[str] = []
    for name, wanted in spec.needed(config).items():
        other = room(name)
        read = {option for stage in (other.build.stages if other.build else ()) for option in stage.settings}
        asked = [option for option in changes if option.partition(".")[0] in read.difference(spec.asked_options)]
        options = {option: getattr(wanted, option) for option in sorted(read)}
        notes += check_built(
            services,
            name,
            asked={option: reduce(getattr, option.split("."), wanted) for option in asked},
            options={one: value for one, value in options.items() if value != getattr(other.default, one)},
        )
    for name in spec.uses(config):
        notes += check_built(services, name, required=False)
    return tuple(notes)


def _continuing(stored: Stored, asked: AnySpec | None) -> AnySpec:
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
