"""The plan of a step: is memory sufficient, and if not, what to ask next and where (paper, section 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pydantic import BaseModel, ConfigDict

from hgmem.model import Entity, Judgement, MemoryPoint, Strategy, Subquery
from hgmem.text import collapse


class Concern(BaseModel):
    """What is still wanted; `points` are indices of the rendered memory to dig into, from 0."""

    model_config = ConfigDict(frozen=True)
    text: str
    points: tuple[int, ...] = ()


class PlanReply(BaseModel):
    """The judgement, and the concerns that it leaves."""

    model_config = ConfigDict(frozen=True)
    judgement: Judgement
    concerns: tuple[Concern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ask whether memory answers the question; `hints` are entities next to memory but not in it."""

    question: str
    points: tuple[MemoryPoint, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    concerns: int = 3
    name = "plan"
    reply_type = PlanReply


class SubqueriesReply(BaseModel):
    """One sub-query a concern, in the order of the concerns."""

    model_config = ConfigDict(frozen=True)
    subqueries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subqueries:
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    question: str
    points: tuple[MemoryPoint, ...]
    concerns: tuple[Concern, ...]
    previous: tuple[str, ...] = ()
    hints: tuple[Entity, ...] = ()
    name = "subqueries"
    reply_type = SubqueriesReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a plan leads to: the sub-queries of the next step, none where the loop ends, and what was dropped."""

    judgement: Judgement | None
    subqueries: tuple[Subquery, ...]
    notes: tuple[str, ...]


def targets_of(concern: Concern, points: Sequence[MemoryPoint]) -> tuple[str, ...]:
    """Return the uids of the points that a concern names and that exist."""
    return tuple(dict.fromkeys(points[index].uid for index in concern.points if 0 <= index < len(points)))


def aligned(plan: PlanReply, reply: SubqueriesReply, *, points: Sequence[MemoryPoint], previous: Sequence[str]) -> Next:
    """Return one sub-query a concern, short replies padded with the concern's text, repeats dropped and noted."""
    notes: list[str] = []
    if len(reply.subqueries) > len(plan.concerns):
        notes.append(f"{len(reply.subqueries) - len(plan.concerns)} sub-queries beyond the concerns were dropped")
    asked = {collapse(text).casefold() for text in previous}
    subqueries: list[Subquery] = []
    for concern, text in zip_longest(plan.concerns, reply.subqueries[: len(plan.concerns)], fillvalue=None):
        if concern is None:
            continue
        wanted = collapse(text or "") or collapse(concern.text)
        if not wanted or wanted.casefold() in asked:
            notes.append(f"sub-query {wanted!r} was dropped: {'it was asked before' if wanted else 'it is empty'}")
            continue
        asked.add(wanted.casefold())
        targets = targets_of(concern, points) if plan.judgement == "local" else ()
        if plan.judgement == "local" and not targets:
            notes.append(f"sub-query {wanted!r} names no living point, so it is asked globally")
        strategy: Strategy = "local" if targets else "global"
        subqueries.append(Subquery(text=wanted, concern=collapse(concern.text), strategy=strategy, targets=targets))
    return Next(judgement=plan.judgement, subqueries=tuple(subqueries), notes=tuple(notes))
