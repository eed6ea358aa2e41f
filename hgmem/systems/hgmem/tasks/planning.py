"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.extractive.plan import PlanContext, plan, subqueries
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import Concern, PlanReply, SubqueriesReply
from hgmem.systems.hgmem.tasks.judging import Judging, Strategies, judging_fields, narrowed, rounds
from hgmem.text.segmentation import collapse
from hgmem.values.graph_elements import Entity

_MOST_READ = 6  # documents that a plan is told to be read, those with most passages read first
_LONGEST_TITLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Where a question stands when a plan is made.

    `done` of `rounds` rounds are done. `read` are titles of documents with the number of their passages that were read,
    `unread` those of others, the nearest to the question first. `describe_hints` shows hints with their descriptions.
    """

    done: int = 1
    rounds: int = 3
    read: tuple[tuple[str, int], ...] = ()
    unread: tuple[str, ...] = ()
    describe_hints: bool = False

    def fields(self, *, previous: Sequence[str], hints: Sequence[Entity]) -> dict[str, str]:
        """Return what the placeholders of a plan's prompt on it, on earlier sub-queries and hints stand for."""
        return {
            "rounds": rounds(self.done, self.rounds),
            "documents": _documents(self.read, self.unread),
            "previous": rendering.listed(previous),
            "hints": self.hinted(hints),
        }

    def hinted(self, hints: Sequence[Entity]) -> str:
        """Return the hints, one a line, or nothing."""
        shown = hints if self.describe_hints else [replace(hint, description="") for hint in hints]
        return rendering.entities(shown) if hints else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ask whether memory answers the question. `hints` are neighbours of memory's entities."""

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    outlook: Outlook = field(default_factory=Outlook)
    concerns: int = 3
    strategies: Strategies = "adaptive"
    judging: Judging = "concern"
    language: str = ""
    name: ClassVar[str] = "plan"
    prompt_file: ClassVar[Path] = PROMPTS / "plan.md"
    reply_type: ClassVar[type[PlanReply]] = PlanReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            **self.outlook.fields(previous=self.previous, hints=self.hints),
            **judging_fields(self.strategies, self.judging, concerns=self.concerns),
            "language": rendering.language(self.language),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with what the prompt names alone."""
        return narrowed(schema, self.strategies, self.judging)

    def extractive(self, vectors: VectorCache) -> PlanReply:
        """Return what memory does not cover of the question, without a language model."""
        context = PlanContext(
            question=self.question,
            points=self.memory.points,
            previous=self.previous,
            hints=self.hints,
            by_concern=self.judging == "concern",
        )
        reply = plan(context, concerns=self.concerns, vectors=vectors)
        numbered = [one.model_copy(update={"points": self.memory.numbers_of(one.points)}) for one in reply.concerns]
        return PlanReply(judgement=reply.judgement, concerns=tuple(numbered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    memory: Shown
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    outlook: Outlook = field(default_factory=Outlook)
    name: ClassVar[str] = "subqueries"
    prompt_file: ClassVar[Path] = PROMPTS / "subqueries.md"
    reply_type: ClassVar[type[SubqueriesReply]] = SubqueriesReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "concerns": rendering.listed(_about(one, self.memory) for one in self.concerns),
            "previous": rendering.listed(self.previous),
            "hints": self.outlook.hinted(self.hints),
        }

    def extractive(self, _: VectorCache) -> SubqueriesReply:
        """Return the concerns as sub-queries, none asked before, without a language model."""
        context = PlanContext(
            question=self.question, points=self.memory.points, previous=self.previous, hints=self.hints
        )
        return subqueries(context, self.concerns, self.memory.numbered)


def _documents(read: Sequence[tuple[str, int]], unread: Sequence[str]) -> str:
    """Return the titles of documents, one a line, or nothing where there is only one."""
    read = [row for row in read if row[0]]  # one without a title can't be told from another
    if len(read) + len(unread) < 2:
        return ""
    most = sorted(read, key=lambda row: (-row[1], row[0]))
    lines = [f"read: {_title(title)} ({passages})" for title, passages in most[:_MOST_READ]]
    if len(most) > _MOST_READ:
        lines.append(f"read: {len(most) - _MOST_READ} more")
    return rendering.listed([*lines, *(f"unread: {_title(title)}" for title in unread)])


def _title(title: str) -> str:
    one = collapse(title)
    return one if len(one) <= _LONGEST_TITLE else f"{one[:_LONGEST_TITLE].rstrip()} …"


def _about(concern: Concern, memory: Shown) -> str:
    """Return a concern with the numbers of its points, as far as memory shows them."""
    shown = memory.numbered
    points = [at for at in dict.fromkeys(concern.points) if 0 <= at < len(shown) and shown[at] is not None]
    return f"{concern.text} (points: {', '.join(map(str, points))})" if points else concern.text
