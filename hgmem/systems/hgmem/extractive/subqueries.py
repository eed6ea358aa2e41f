"""One sub-query for each concern, none asked before."""

from collections.abc import Iterable, Iterator, Sequence

from hgmem.systems.hgmem.extractive.plan import PlanContext
from hgmem.systems.hgmem.replies import Concern, SubqueriesReply
from hgmem.text.segmentation import collapse
from hgmem.values.records import MemoryPoint


def subqueries(
    context: PlanContext, concerns: Iterable[Concern], numbered: Sequence[MemoryPoint | None]
) -> SubqueriesReply:
    """Return a sub-query a concern: the concern itself, told apart from the earlier ones by more names.

    Concerns name points by their place in `numbered`.
    """
    taken = {text.casefold() for text in (*context.previous, context.question)}
    found = []
    for concern in concerns:
        text = next(each for each in _wordings(context, concern, numbered) if each.casefold() not in taken)
        taken.add(text.casefold())
        found.append(text)
    return SubqueriesReply(subqueries=tuple(found))


def _wordings(context: PlanContext, concern: Concern, numbered: Sequence[MemoryPoint | None]) -> Iterator[str]:
    """Yield the concern's text, then with names of its points, hints and the question, then numbered."""
    text = collapse(concern.text) or collapse(context.question)
    yield text
    points = [numbered[at] for at in concern.points if 0 <= at < len(numbered)]
    named = [entity.name for point in points if point is not None for entity in point.entities]
    for name in dict.fromkeys([*named, *(hint.name for hint in context.hints), collapse(context.question)]):
        yield f"{text}, {name}"
    number = 2
    while True:
        yield f"{text} ({number})"
        number += 1
