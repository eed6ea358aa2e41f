"""What MemoRAG can do besides answering: summarise documents."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import NonNegativeInt, PositiveInt

from hgmem.errors import UsageError
from hgmem.graph.builds import find_build
from hgmem.retrieval.document_filters import normal
from hgmem.services import Services
from hgmem.systems.answering import notes_on_builds
from hgmem.systems.gists.build import NAME as GISTS
from hgmem.systems.gists.recipes import GistsConfig
from hgmem.systems.memorag.answer import SYSTEM, retrieve_all
from hgmem.systems.memorag.recipes import DEFAULT, MemoRAGConfig, registered
from hgmem.systems.spec import changed, loaded
from hgmem.systems.verbs import Verb
from hgmem.values.inputs import Question, typed_filters
from hgmem.values.records import CitedText

_FORM = "a summary in plain prose, as long as the matter needs, that begins with what matters most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise:
    """What is summarised."""

    theme: Annotated[str, "What the summary is about. Default: everything."] = ""
    where: Annotated[tuple[str, ...], "Summarise only documents of this KEY=VALUE: source, title or metadata."] = ()
    key_points: Annotated[PositiveInt, "Maximum key points that memory writes, at least one for each part of it."] = 12
    tokens: Annotated[NonNegativeInt, "Maximum tokens of passages. Default: as the recipe has them."] = 0
    recipe: Annotated[str, "Recipe. Default: memory and options of the build."] = ""


def summarise(services: Services, arguments: Summarise) -> CitedText:
    """Return a summary: key points from all of memory, passages for each of them, and a text drawn from these.

    It is recorded as a question (official code: task "summarize"), and written in the language of the documents.
    """
    theme, most = arguments.theme.strip(), services.settings.max_question_characters
    if len(theme) > most:
        raise UsageError(f"theme= has {len(theme):,} characters, more than the limit of {most}: shorten it")
    config = _config(services, arguments)
    language = services.settings.answer_language or "the language of the passages"
    settings = services.settings.model_copy(update={"answer_language": language})
    question = Question(
        text=f"Summarise what the documents say about this: {theme}" if theme else "Summarise the documents.",
        filters=normal(typed_filters(arguments.where)),
        notes=(*notes_on_builds(services, SYSTEM, config), *SYSTEM.notes(services, config)),
        theme=bool(theme),
    )
    summarising = replace(SYSTEM, retrieve=partial(retrieve_all, theme=theme))
    services = SYSTEM.serving(replace(services, settings=settings), config)
    answer = summarising.answer(services, question, config, stored=None)
    return CitedText(
        text=answer.text,
        citations=answer.citations,
        memory=answer.memory,
        notes=(*answer.notes, *(note for step in answer.steps for note in step.notes)),
    )


def _config(services: Services, arguments: Summarise) -> MemoRAGConfig:
    """Return the recipe, by default that of the build, with key points as the only clues.

    Their call may have four times a clue's tokens.
    """
    config = SYSTEM.configured(arguments.recipe, {}) if arguments.recipe else _built(services)
    return changed(
        config,
        {
            "kinds": ("key_points",),
            "memory": "gists" if config.memory == "none" else config.memory,
            "most_clues": arguments.key_points,
            "clue_tokens": 4 * config.clue_tokens,  # official code: 512 new tokens for key points
            "evidence_tokens": arguments.tokens or config.evidence_tokens,
            "form": _FORM,
        },
    )


def _built(services: Services) -> MemoRAGConfig:
    """Return the config of the memory that was formed: that of another package, else the gists with their options."""
    own = _stored(services, SYSTEM.name)
    if own.get("memory") in registered():
        return loaded(MemoRAGConfig, own)
    return replace(DEFAULT, **asdict(loaded(GistsConfig, _stored(services, GISTS))))


def _stored(services: Services, build: str) -> Mapping[str, Any]:
    """Return the options of a build that was made, else none."""
    row = find_build(services.database, corpus=services.corpus, system=build)
    return json.loads(row.settings) if row and row.finished_at else {}


VERBS = (
    Verb(
        name="summarise",
        summary="Summarise documents, all of them or about a theme, with citations.",
        arguments=Summarise,
        run=summarise,
    ),
)
