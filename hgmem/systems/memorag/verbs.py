"""What MemoRAG can do besides answering: summarise documents, and tell what levels its memory has."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import PositiveInt

from hgmem.errors import UsageError
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.document_filters import normal
from hgmem.services import Services
from hgmem.systems.memorag.answer import SYSTEM
from hgmem.systems.memorag.memory_models import GistPlace, gist_places, whole_text
from hgmem.systems.memorag.recipes import DEFAULT
from hgmem.systems.options import changed
from hgmem.systems.verbs import Verb
from hgmem.values.inputs import Question, typed_filters
from hgmem.values.records import CitedText

_FORM = "a summary in plain prose, as long as the matter needs, that begins with what matters most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise:
    """What is summarised."""

    theme: Annotated[str, "What the summary is about. Default: everything."] = ""
    where: Annotated[tuple[str, ...], "Summarise only documents of this KEY=VALUE: source, title or metadata."] = ()
    key_points: Annotated[PositiveInt, "Maximum key points that memory writes."] = 12
    tokens: Annotated[PositiveInt, "Maximum tokens of passages that the summary is drawn from."] = 6_000


def summarise(services: Services, arguments: Summarise) -> CitedText:
    """Return a summary: key points from memory, passages for each of them, and a text drawn from these.

    It is recorded as a question (official code: task "summarize").
    """
    theme, most = arguments.theme.strip(), services.settings.max_question_characters
    if len(theme) > most:
        raise UsageError(f"theme= has {len(theme):,} characters, more than the limit of {most}: shorten it")
    text = f"Summarise what the documents say about this: {theme}" if theme else "Summarise the documents."
    question = Question(text=text, filters=normal(typed_filters(arguments.where)))
    options = {"kinds": ("key_points",), "most_clues": arguments.key_points, "evidence_tokens": arguments.tokens}
    config = changed(DEFAULT, {**options, "form": _FORM})
    answer = SYSTEM.answer(services, question, config, stored=None)
    return CitedText(
        text=answer.text,
        citations=answer.citations,
        memory=answer.memory,
        notes=(*answer.notes, *(note for step in answer.steps for note in step.notes)),
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
