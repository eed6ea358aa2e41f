"""What MemoRAG can do besides answering: summarise documents, and tell what levels its memory has."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from pydantic import NonNegativeInt, PositiveInt

from hgmem.errors import UsageError
from hgmem.graph.builds import find_build
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.document_filters import normal
from hgmem.services import Services
from hgmem.systems.memorag.answer import SYSTEM, retrieve_all
from hgmem.systems.memorag.memory_models import GistPlace, gist_places, whole_text
from hgmem.systems.memorag.recipes import MemoRAGConfig
from hgmem.systems.options import changed, loaded
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
    tokens: Annotated[NonNegativeInt, "Maximum tokens of passages. Default: as the build's recipe has them."] = 0


def summarise(services: Services, arguments: Summarise) -> CitedText:
    """Return a summary: key points from all of memory, passages for each of them, and a text drawn from these.

    Memory and recipe are those of the build. It is recorded as a question (official code: task "summarize"), and
    written in the language of the documents.
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
        notes=tuple(SYSTEM.notes(services, config)),
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
    """Return the build's config, with key points as the only clues. Their call may have four times a clue's tokens."""
    row = find_build(services.database, corpus=services.corpus, system=SYSTEM.name)
    built = loaded(MemoRAGConfig, json.loads(row.settings)) if row else SYSTEM.default
    return changed(
        built,
        {
            "kinds": ("key_points",),
            "memory": "gists" if built.memory == "none" else built.memory,
            "most_clues": arguments.key_points,
            "clue_tokens": 4 * built.clue_tokens,  # official code: 512 new tokens for key points
            "evidence_tokens": arguments.tokens or built.evidence_tokens,
            "form": _FORM,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of the pyramid: its gists, their tokens, and how many tokens of text each of these stands for."""

    level: int
    gists: int
    tokens: int
    ratio: float


def levels(services: Services, arguments: object) -> Sequence[Level]:
    """Return the levels of the pyramid, the lowest first."""
    scope = Scope(corpus=services.corpus)
    found: dict[int, list[GistPlace]] = defaultdict(list)
    for place in gist_places(services.database, scope=scope):
        found[place.level].append(place)
    _, text = whole_text(services.database, scope=scope, budget=0)
    tokens = {level: sum(place.tokens for place in places) for level, places in sorted(found.items())}
    return [
        Level(level=level, gists=len(found[level]), tokens=own, ratio=round(text / max(own, 1), 1))
        for level, own in tokens.items()
    ]


VERBS = (
    Verb(
        name="summarise",
        summary="Summarise documents, all of them or about a theme, with citations.",
        arguments=Summarise,
        run=summarise,
        built=True,
    ),
    Verb(name="levels", summary="List the levels of the memory.", run=levels, built=True),
)
