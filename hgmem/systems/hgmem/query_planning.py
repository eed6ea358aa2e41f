"""Turn a plan into the sub-queries of the next step, local or global."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hgmem.systems.hgmem.replies import Concern, Inquiry, SubqueriesReply
from hgmem.systems.hgmem.tasks.planning import Strategies
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import GLOBAL, Subquery
from hgmem.values.records import Judgement, MemoryPoint

Follow: TypeAlias = Callable[[MemoryPoint], MemoryPoint | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The next step: its sub-queries, empty if the loop ends, and notes on dropped ones."""

    judgement: Judgement | None = None
    subqueries: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()


def paired(concerns: Sequence[Concern], reply: SubqueriesReply) -> tuple[tuple[Inquiry, ...], tuple[str, ...]]:
    """Return each concern with its sub-query, short replies padded with the concern's text, and notes."""
    surplus = len(reply.subqueries) - len(concerns)
    notes = (f"{surplus} sub-queries beyond the concerns were dropped",) if surplus > 0 else ()
    texts = (*reply.subqueries, *("" for _ in concerns))
    inquiries = tuple(
        Inquiry(text=concern.text, subquery=text, points=concern.points)
        for concern, text in zip(concerns, texts, strict=False)
    )
    return inquiries, notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Limits of a plan: the number of concerns, the strategies, and the sub-queries asked before."""

    concerns: int = 3
    strategies: Strategies = "adaptive"
    previous: tuple[str, ...] = ()


def following(
    judgement: Judgement,
    inquiries: Sequence[Inquiry],
    *,
    shown: Sequence[MemoryPoint | None],
    living: Follow,
    course: Course,
) -> Next:
    """Return the sub-queries of the next step. Surplus, empty and repeated ones are dropped with a note.

    A concern's points stand for their active versions. A concern without an active point is searched globally.
    """
    if judgement == "sufficient":
        return Next(judgement=judgement)
    allowed: Judgement = judgement if course.strategies == "adaptive" else course.strategies
    notes = [] if allowed == judgement else [f"the plan judged {judgement}, but this recipe always uses {allowed}"]
    surplus = len(inquiries) - course.concerns
    if surplus > 0:
        notes.append(f"{surplus} concerns beyond {course.concerns} were dropped")
    asked = {collapse(text).casefold() for text in course.previous}
    subqueries: list[Subquery] = []
    for inquiry in inquiries[: course.concerns]:
        text = collapse(inquiry.subquery) or collapse(inquiry.text)
        if not text or text.casefold() in asked:
            notes.append(f"sub-query {text!r} was dropped: {'it was asked before' if text else 'it is empty'}")
            continue
        asked.add(text.casefold())
        targets = _targets(inquiry, shown, living) if allowed == "local" else ()
        if allowed == "local":
            notes += _untargeted(text, inquiry, shown, targets)
        strategy = "local" if targets else GLOBAL
        subqueries.append(Subquery(text=text, concern=collapse(inquiry.text), strategy=strategy, targets=targets))
    if not subqueries:
        notes.append("no sub-queries left: the investigation ends")
    return Next(judgement=allowed, subqueries=tuple(subqueries), notes=tuple(notes))


def _untargeted(text: str, inquiry: Inquiry, shown: Sequence[MemoryPoint | None], targets: Sequence[str]) -> list[str]:
    """Return notes on points that a concern names but that are not active."""
    if not targets:
        return [f"sub-query {text!r} names no active point: searched globally"]
    unknown = [at for at in dict.fromkeys(inquiry.points) if not 0 <= at < len(shown) or shown[at] is None]
    return [f"sub-query {text!r}: point {at} does not exist" for at in unknown]


def _targets(inquiry: Inquiry, shown: Sequence[MemoryPoint | None], living: Follow) -> tuple[str, ...]:
    """Return the uids of the active points that a concern names."""
    named = (shown[index] for index in inquiry.points if 0 <= index < len(shown))
    points = (living(point) for point in named if point is not None)
    return tuple(dict.fromkeys(point.uid for point in points if point is not None))
