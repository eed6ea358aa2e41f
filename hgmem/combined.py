"""Several tasks of a step in one call, for fewer calls and shorter prompts (recipes `COMPACT` and `SINGLE`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hgmem import rendering
from hgmem.memory import Insertion, Joining, Revision, UpdateRule, updating
from hgmem.model import Entity, Evidence, Judgement
from hgmem.plan import Inquiry, Strategies, judging
from hgmem.rendering import Shown
from hgmem.reply import Reply


class MergeAndPlanReply(Reply):
    """Which points to merge, the judgement, and what to ask next; all indices are those before the merges."""

    merge: tuple[Joining, ...] = ()
    judgement: Judgement
    concerns: tuple[Inquiry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAndPlan:
    """Ask for merges, plan and sub-queries in one call: `Merge`, `Plan` and `Subqueries` together."""

    question: str
    memory: Shown
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    merging: bool = True
    strategies: Strategies = "adaptive"
    language: str = ""
    name: ClassVar[str] = "merge_and_plan"
    reply_type: ClassVar[type[MergeAndPlanReply]] = MergeAndPlanReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
            "concerns": str(self.concerns),
            "merging": _merging(self.merging),
            "judging": judging(self.strategies),
            "language": rendering.language(self.language),
        }


class StepReply(Reply):
    """A whole step: what the evidence adds, which points to merge, the judgement, and what to ask next.

    Points that this reply inserts are counted on from those shown, in the order of `insert`.
    """

    update: tuple[Revision, ...] = ()
    insert: tuple[Insertion, ...] = ()
    merge: tuple[Joining, ...] = ()
    judgement: Judgement | None = None
    concerns: tuple[Inquiry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeStep:
    """Ask for a whole step in one call: `Evolve`, `Merge`, `Plan` and `Subqueries` together.

    `planning` is false on the last step, which asks for operations and merges alone.
    """

    question: str
    subqueries: tuple[str, ...]
    memory: Shown
    evidence: Evidence
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    merging: bool = True
    planning: bool = True
    strategies: Strategies = "adaptive"
    update: UpdateRule = "unite"
    language: str = ""
    name: ClassVar[str] = "step"
    reply_type: ClassVar[type[StepReply]] = StepReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        last = '"sufficient", and no concerns: this was the last round.'
        return {
            "question": rendering.text(self.question),
            "subqueries": rendering.asked(self.subqueries),
            "memory": rendering.memory(self.memory),
            "evidence": rendering.evidence(self.evidence),
            "previous": rendering.listed(self.previous),
            "hints": rendering.entities(self.hints),
            "concerns": str(self.concerns),
            "updating": updating(self.update),
            "merging": _merging(self.merging),
            "judging": judging(self.strategies) if self.planning else last,
            "language": rendering.language(self.language),
        }


def _merging(allowed: bool) -> str:
    return (
        "Merge where it helps."
        if allowed
        else "Points are not merged in this round: leave `merge` empty, other than in examples."
    )
