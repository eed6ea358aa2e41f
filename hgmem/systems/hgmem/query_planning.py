"""Turn a plan into the sub-queries of the next step, local or global."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import Concern, Inquiry, SubqueriesReply, Verdict, Where
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import GLOBAL, Subquery
from hgmem.values.records import Judgement, MemoryPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The next step: its sub-queries, empty if the loop ends, and notes on dropped ones."""

    judgement: Judgement | None = None
    subqueries: tuple[Subquery, ...] = ()
    notes: tuple[str, ...] = ()


def with_subqueries(concerns: Sequence[Concern], reply: SubqueriesReply) -> tuple[tuple[Inquiry, ...], tuple[str, ...]]:
    """Return each concern with its sub-query, short replies padded with the concern's text, and notes."""
    surplus = len(reply.subqueries) - len(concerns)
    notes = (f"{surplus} sub-queries beyond the concerns were dropped",) if surplus > 0 else ()
    texts = (*reply.subqueries, *("" for _ in concerns))
    return tuple(map(Concern.asked, concerns, texts)), notes


def next_step(
    verdict: Verdict,
    inquiries: Sequence[Inquiry],
    *,
    points: Sequence[MemoryPoint | None],
    config: HGMemConfig,
    previous: Sequence[str] = (),
) -> NextStep:
    """Return the sub-queries of the next step. Surplus, empty ones and those asked before are dropped with a note.

    Numbers of points refer to `points`, their active versions. A concern without an active point is searched globally.
    Where each concern is judged by itself, the step's judgement is local if any of them is.
    """
    if verdict == "sufficient":
        return NextStep(judgement=verdict)
    notes = _overruled(verdict, config)
    surplus = len(inquiries) - config.concerns
    if surplus > 0:
        notes.append(f"{surplus} concerns beyond {config.concerns} were dropped")
    asked = {collapse(text).casefold() for text in previous}
    subqueries: list[Subquery] = []
    for inquiry in inquiries[: config.concerns]:
        text = collapse(inquiry.subquery) or collapse(inquiry.text)
        if not text or text.casefold() in asked:
            notes.append(f"sub-query {text!r} was dropped: {'it was asked before' if text else 'it is empty'}")
            continue
        asked.add(text.casefold())
        local = _where(verdict, inquiry, config) == "local"
        targets = _targets(inquiry, points) if local else ()
        if local:
            notes += _untargeted(text, inquiry, points, targets)
        strategy = "local" if targets else GLOBAL
        subqueries.append(Subquery(text=text, concern=collapse(inquiry.text), strategy=strategy, targets=targets))
    if not subqueries:
        notes.append("no sub-queries left: the investigation ends")
    return NextStep(judgement=_judged(verdict, subqueries, config), subqueries=tuple(subqueries), notes=tuple(notes))


def _where(verdict: Verdict, inquiry: Inquiry, config: HGMemConfig) -> Where:
    """Return where to look for a concern: as the recipe always does, as the concern says, or as the plan does."""
    if config.strategies != "adaptive":
        return config.strategies
    if inquiry.strategy and (config.judging == "concern" or verdict == "open"):
        return inquiry.strategy
    if verdict in ("local", "global"):
        return verdict
    return "local" if inquiry.points else "global"


def _overruled(verdict: Verdict, config: HGMemConfig) -> list[str]:
    """Return a note where the recipe looks elsewhere than the plan."""
    if config.strategies in ("adaptive", verdict) or verdict == "open":
        return []
    return [f"the plan judged {verdict}, but this recipe always uses {config.strategies}"]


def _judged(verdict: Verdict, subqueries: Sequence[Subquery], config: HGMemConfig) -> Judgement:
    """Return the judgement of a step, of which some sub-queries may be local and others global."""
    if config.strategies != "adaptive":
        return config.strategies
    if verdict != "open" and config.judging == "step":
        return verdict
    return "local" if any(subquery.targets for subquery in subqueries) else "global"


def _untargeted(text: str, inquiry: Inquiry, points: Sequence[MemoryPoint | None], targets: Sequence[str]) -> list[str]:
    """Return notes on points that a concern names but that are not active."""
    if not targets:
        return [f"sub-query {text!r} names no active point: searched globally"]
    unknown = [at for at in dict.fromkeys(inquiry.points) if not 0 <= at < len(points) or points[at] is None]
    return [f"sub-query {text!r}: point {at} does not exist" for at in unknown]


def _targets(inquiry: Inquiry, points: Sequence[MemoryPoint | None]) -> tuple[str, ...]:
    """Return the uids of the active points that a concern names."""
    named = (points[index] for index in inquiry.points if 0 <= index < len(points))
    return tuple(dict.fromkeys(point.uid for point in named if point is not None))
