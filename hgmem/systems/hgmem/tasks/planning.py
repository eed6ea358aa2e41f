"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3).

A plan judges memory once for a step, as the official code does, or for each concern by itself. It may come with merges
or with a whole step in one call, for fewer calls and shorter prompts (recipes `COMPACT` and `SINGLE`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.extractive.plan import PlanContext, plan, subqueries
from hgmem.systems.hgmem.replies import (
    Concern,
    MergeAndPlanReply,
    PlanAndAskReply,
    PlanReply,
    StepReply,
    StepWithoutMergesReply,
    SubqueriesReply,
    Where,
)
from hgmem.systems.hgmem.tasks import PROMPTS
from hgmem.systems.hgmem.tasks.memory_changes import Merge, OfEvidence, OfMemory
from hgmem.text.segmentation import collapse
from hgmem.values.graph_elements import Entity

Strategies: TypeAlias = Literal["adaptive", "local", "global"]
Judging: TypeAlias = Literal["step", "concern"]
_Judged: TypeAlias = Literal["step", "concern", "local", "global"]

_MOST_READ = 6  # documents that a plan is told to be read, those with most passages read first
_LONGEST_TITLE = 100
_ENOUGH = (
    '"sufficient" if memory answers each part of the question and has checked what the question takes for granted '
    "(where that proved false, saying so is the answer)"
)
_POINTS = "`points` are the numbers of the points to look into"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    """What a prompt says of the judgement and of where a concern is looked for.

    `verdicts` are those beside "sufficient"; the first is the example's.
    """

    judging: str
    where: str
    verdicts: tuple[str, ...]
    examples: tuple[Where, ...]  # where its concerns look
    each: bool = False  # whether a concern has a strategy of its own


# "step" is the choice of the official code's plan: dig into points (2.1) or explore beyond memory (2.2).
_WORDINGS: Mapping[_Judged, _Wording] = {
    "concern": _Wording(
        judging=f'{_ENOUGH}, else "open".',
        where=(
            '`strategy` says where to look: "local" if a person, place or thing that it is about is among the entities '
            'of memory, `points` being the numbers of the points that have it; "global" if none is, or if looking '
            "around those points has found nothing: entities of memory are then left out of the search, and `points` "
            "is empty. Each concern is judged by itself."
        ),
        verdicts=("open",),
        examples=("local", "global"),
        each=True,
    ),
    "step": _Wording(
        judging=(
            f'{_ENOUGH}; "local" if points of memory should be looked into more deeply; "global" if something beyond '
            "memory should be explored."
        ),
        where=f"{_POINTS} if the judgement is local, else empty.",
        verdicts=("local", "global"),
        examples=("local",),
    ),
    "local": _Wording(
        judging=f'{_ENOUGH}, else "local".', where=f"{_POINTS}.", verdicts=("local",), examples=("local",)
    ),
    "global": _Wording(
        judging=f'{_ENOUGH}, else "global".',
        where="Each is something that memory does not touch yet, and `points` is empty.",
        verdicts=("global",),
        examples=("global",),
    ),
}
# Concerns of the prompts' example, and their sub-queries.
_EXAMPLES = {
    "local": ("What happened to the Holm ferry under Ida Berg.", "Holm ferry in June under Ida Berg"),
    "global": ("Why the Vik bridge was closed, of which memory has nothing.", "Vik bridge closed in June"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Where a question stands when a plan is made.

    `done` of `rounds` rounds are done. `read` are titles of documents with the number of their passages that were read,
    `unread` those of others, the nearest to the question first. `describe_hints` shows hints with their descriptions.
    """

    done: int = 1
    rounds: int = 3
    read: tuple[tuple[str, int], ...] = ()
    unread: tuple[str, ...] = ()
    describe_hints: bool = False

    def hinted(self, hints: Sequence[Entity]) -> str:
        """Return the hints, one a line, or nothing."""
        named = hints if self.describe_hints else [replace(hint, description="") for hint in hints]
        return rendering.entities(named) if hints else ""


@dataclass(frozen=True, kw_only=True)
class OfPlan(OfMemory):
    """What a prompt says of the plan that it asks for. `hints` are neighbours of memory's entities."""

    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    round: Round = field(default_factory=Round)
    concerns: int = 3
    strategies: Strategies = "adaptive"
    judging: Judging = "concern"
    subqueries_too: ClassVar[bool] = True  # whether a concern of the reply brings its sub-query

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            **super().fields(),
            "rounds": rounds(self.round.done, self.round.rounds),
            "documents": _documents(self.round.read, self.round.unread),
            "previous": rendering.listed(self.previous),
            "hints": self.round.hinted(self.hints),
            **judging_fields(self.strategies, self.judging, concerns=self.concerns, subqueries=self.subqueries_too),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with what the prompt names alone."""
        return narrowed(schema, self.strategies, self.judging)

    def context(self, memory: PromptMemory, previous: tuple[str, ...]) -> PlanContext:
        """Return what a plan for this memory starts from, without a language model."""
        return PlanContext(
            question=self.question,
            points=memory.points,
            previous=previous,
            hints=self.hints,
            by_concern=self.judging == "concern",
        )

    def planned(self, vectors: VectorCache, *, memory: PromptMemory, previous: tuple[str, ...]) -> PlanReply:
        """Return what memory does not cover of the question, with its points' numbers, without a language model."""
        reply = plan(self.context(memory, previous), concerns=self.concerns, vectors=vectors)
        numbered = [each.model_copy(update={"points": memory.numbers_of(each.points)}) for each in reply.concerns]
        return PlanReply(judgement=reply.judgement, concerns=tuple(numbered))

    def asked(self, vectors: VectorCache, *, memory: PromptMemory, previous: tuple[str, ...]) -> PlanAndAskReply:
        """Return the plan for this memory, its concerns with their sub-queries, without a language model."""
        planned = self.planned(vectors, memory=memory, previous=previous)
        texts = subqueries(self.context(memory, previous), planned.concerns, memory.numbered).subqueries
        concerns = tuple(map(Concern.asked, planned.concerns, texts))
        return PlanAndAskReply(judgement=planned.judgement, concerns=concerns)


@dataclass(frozen=True, kw_only=True)
class Plan(OfPlan):
    """Ask whether memory answers the question."""

    name: ClassVar[str] = "plan"
    prompt_file: ClassVar[Path] = PROMPTS / "plan.md"
    reply_type: ClassVar[type[PlanReply]] = PlanReply
    subqueries_too: ClassVar[bool] = False

    def extractive(self, vectors: VectorCache) -> PlanReply:
        """Return what memory does not cover of the question, without a language model."""
        return self.planned(vectors, memory=self.memory, previous=self.previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    memory: PromptMemory
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    round: Round = field(default_factory=Round)
    name: ClassVar[str] = "subqueries"
    prompt_file: ClassVar[Path] = PROMPTS / "subqueries.md"
    reply_type: ClassVar[type[SubqueriesReply]] = SubqueriesReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "concerns": rendering.listed(_about(concern, self.memory) for concern in self.concerns),
            "previous": rendering.listed(self.previous),
            "hints": self.round.hinted(self.hints),
        }

    def extractive(self, _: VectorCache) -> SubqueriesReply:
        """Return the concerns as sub-queries, none asked before, without a language model."""
        context = PlanContext(
            question=self.question, points=self.memory.points, previous=self.previous, hints=self.hints
        )
        return subqueries(context, self.concerns, self.memory.numbered)


@dataclass(frozen=True, kw_only=True)
class MergeAndPlan(OfPlan):
    """Ask for merges, plan and sub-queries in one call: `Merge`, `Plan` and `Subqueries` together.

    Without `merging` the prompt has no word of merges.
    """

    merging: bool = True
    name: ClassVar[str] = "merge_and_plan"
    prompt_file: ClassVar[Path] = PROMPTS / "merge_and_plan.md"

    @property
    def reply_type(self) -> type[PlanAndAskReply]:
        """What the reply may hold."""
        return MergeAndPlanReply if self.merging else PlanAndAskReply

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {**super().fields(), "merging": "yes" if self.merging else ""}

    def extractive(self, vectors: VectorCache) -> PlanAndAskReply:
        """Return merges, judgement and concerns, all with the numbers of the points shown."""
        reply = self.asked(vectors, memory=self.memory, previous=self.previous)
        if not self.merging:
            return reply
        merged = Merge(question=self.question, memory=self.memory).extractive(vectors).merge
        return MergeAndPlanReply(merge=merged, judgement=reply.judgement, concerns=reply.concerns)


@dataclass(frozen=True, kw_only=True)
class WholeStep(OfPlan, OfEvidence):
    """Ask for a whole step in one call: `Evolve`, `Merge`, `Plan` and `Subqueries` together.

    Numbers of points that the reply inserts are counted on from those shown, in what it plans too.
    """

    name: ClassVar[str] = "step"
    prompt_file: ClassVar[Path] = PROMPTS / "step.md"

    @property
    def reply_type(self) -> type[StepWithoutMergesReply]:
        """What the reply may hold."""
        return StepReply if self.merging else StepWithoutMergesReply

    def extractive(self, vectors: VectorCache) -> StepReply:
        """Return what the evidence adds, then merges, judgement and what to ask of memory as it is with that."""
        evolved, memory = self.evolved(vectors)
        reply = self.asked(vectors, memory=memory, previous=(*self.previous, *self.subqueries))
        return StepReply(
            update=evolved.update,
            insert=evolved.insert,
            merge=evolved.merge,
            judgement=reply.judgement,
            concerns=reply.concerns,
        )


def judging_fields(
    strategies: Strategies, judging: Judging, *, concerns: int, subqueries: bool = False
) -> dict[str, str]:
    """Return what the placeholders on judgement and concerns stand for.

    `subqueries` is whether a concern brings its sub-query.
    """
    wording = _WORDINGS[judging if strategies == "adaptive" else strategies]
    example = [_concern(where, wording, words=_EXAMPLES[where], subqueries=subqueries) for where in wording.examples]
    form = _concern(wording.examples[0], wording, words=("…", "…"), subqueries=subqueries)
    return {
        "judging": wording.judging,
        "where": wording.where,
        "concerns": str(concerns),
        "form": _written(wording.verdicts[0], [form]),
        "example": _written(wording.verdicts[0], example),
    }


def narrowed(schema: dict[str, Any], strategies: Strategies, judging: Judging) -> dict[str, Any]:
    """Return the schema of a plan's reply with the judgements and strategies that its prompt names, and no others."""
    wording = _WORDINGS[judging if strategies == "adaptive" else strategies]
    concerns = schema["properties"]["concerns"]
    concern = concerns["items"]
    fields = {name: part for name, part in concern["properties"].items() if wording.each or name != "strategy"}
    if wording.each:
        fields["strategy"] = {"type": "string", "enum": list(wording.examples)}
    concern = {**concern, "properties": fields, "required": list(fields)}
    judgement = {"type": "string", "enum": ["sufficient", *wording.verdicts]}
    parts = {**schema["properties"], "judgement": judgement, "concerns": {**concerns, "items": concern}}
    return {**schema, "properties": parts}


def _concern(
    strategy: str, wording: _Wording, *, words: tuple[str, str], subqueries: bool
) -> dict[str, str | list[int]]:
    text, subquery = words
    return {
        "text": text,
        **({"strategy": strategy} if wording.each else {}),
        "points": [0] if strategy == "local" else [],
        **({"subquery": subquery} if subqueries else {}),
    }


def _written(verdict: str, concerns: list[dict[str, str | list[int]]]) -> str:
    """Return the fields of a reply as JSON, without the braces around them: others may stand before them."""
    return json.dumps({"judgement": verdict, "concerns": concerns}, ensure_ascii=False)[1:-1]


def rounds(done: int, of: int) -> str:
    """Return which round of a question this is, and whether the next is the last."""
    left = of - done
    if left == 1:
        return f"Round {done} of {of}: one round is left, the last. Ask for what the answer needs most."
    return f"Round {done} of {of}: {left} rounds are left."


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
    line = collapse(title)
    return line if len(line) <= _LONGEST_TITLE else f"{line[:_LONGEST_TITLE].rstrip()} …"


def _about(concern: Concern, memory: PromptMemory) -> str:
    """Return a concern with the numbers of its points, as far as memory shows them."""
    known = memory.numbered
    points = [at for at in dict.fromkeys(concern.points) if 0 <= at < len(known) and known[at] is not None]
    return f"{concern.text} (points: {', '.join(map(str, points))})" if points else concern.text
