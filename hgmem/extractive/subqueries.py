"""One sub-query for each concern, none asked before."""

from collections.abc import Iterator

from hgmem.plan import Concern, Subqueries, SubqueriesReply
from hgmem.text import collapse


def subqueries(task: Subqueries) -> SubqueriesReply:
    """Return a sub-query a concern: the concern itself, told apart from the earlier ones by more names."""
    taken = {text.casefold() for text in (*task.previous, task.question)}
    found = []
    for concern in task.concerns:
        text = next(each for each in _wordings(task, concern) if each.casefold() not in taken)
        taken.add(text.casefold())
        found.append(text)
    return SubqueriesReply(subqueries=tuple(found))


def _wordings(task: Subqueries, concern: Concern) -> Iterator[str]:
    """Yield the concern's text, then with names of its points, hints and the question, then numbered."""
    text = collapse(concern.text) or collapse(task.question)
    yield text
    points = [task.memory.points[at] for at in concern.points if 0 <= at < len(task.memory.points)]
    named = [entity.name for point in points for entity in point.entities]
    for name in dict.fromkeys([*named, *(hint.name for hint in task.hints), collapse(task.question)]):
        yield f"{text}, {name}"
    number = 2
    while True:
        yield f"{text} ({number})"
        number += 1
