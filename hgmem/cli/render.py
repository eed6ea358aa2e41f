"""How answers, memories and lineages read on a screen."""

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from hgmem.cli.output import indented, one_line, words
from hgmem.cli.queries import picture
from hgmem.model import Answer, Citation, Lineage, Memory, MemoryPoint, Operation, Step, Usage

EXTRACTIVE = "extractive"
DONE = {"insert": "inserted", "revise": "revised", "merge": "merged", "drop": "dropped"}
NAMES = 12  # entities of a point that are named


def answered(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer, its citations, how it came about, and how to see its memory."""
    yield indented(answer.text)
    yield ""
    yield from map(_citation, answer.citations)
    if answer.citations:
        yield ""
    for said in answer.notes:
        yield indented(f"note: {said}")
    how = f"{len(answer.steps)} step{'s' * (len(answer.steps) != 1)}, {_model(answer.model)}, {answer.seconds:.1f} s"
    yield indented(f"{how}, memory {answer.memory}")
    yield from _browser(answer.memory, points=bool(answer.points), step=None)


def remembered(answer: Answer) -> Iterator[RenderableType]:
    """Yield every step of a question, then the living points."""
    points = {point.uid: point for point in answer.points}
    for step in answer.steps:
        yield ""
        yield from _step(step, points)
    yield ""
    yield from _points([point for point in answer.points if point.alive(answer.step)], answer.step)


def stored(memory: Memory) -> Iterator[RenderableType]:
    """Yield a stored memory: its steps up to the one it is shown at, its points then, its answers."""
    yield _bold(f"memory {memory.uid}")
    yield indented(f"corpus {memory.corpus}, system {memory.system}, {memory.status}, since {_when(memory.created_at)}")
    points = {point.uid: point for answer in memory.answers for point in answer.points}
    points |= {point.uid: point for point in memory.points}
    for step in memory.steps:
        yield ""
        yield from _step(step, points)
    yield ""
    yield from _points(list(memory.points), memory.step)
    for answer in memory.answers:
        yield ""
        yield _bold(f"answer after step {answer.step} ({_model(answer.model)})")
        yield indented(answer.question, 2)
        yield indented(answer.text, 2)
        yield from map(_citation, answer.citations)
    yield ""
    yield from _browser(memory.uid, points=bool(memory.points), step=memory.step)


def ancestry(lineage: Lineage) -> Tree:
    """Return the tree of a point and of the points that became it."""
    tree = Tree(_born(lineage), guide_style="dim")
    _grow(tree, lineage)
    return tree


def spent(usage: Usage) -> Iterator[RenderableType]:
    """Yield what a question cost, by kind."""
    yield ""
    for kind, calls in usage.calls.items():
        seconds = sum(usage.seconds.get(kind, {}).values())
        which = ", ".join(f"{name} {number}" for name, number in sorted(calls.items()))
        yield indented(f"{kind}: {sum(calls.values())} calls, {seconds:.2f} s ({which})")
    if usage.prompt_tokens or usage.completion_tokens:
        yield indented(f"tokens: {usage.prompt_tokens:,} in, {usage.completion_tokens:,} out")


def _citation(citation: Citation) -> RenderableType:
    place = "" if citation.start is None else f" ({citation.start}–{citation.end})"
    withdrawn = " (withdrawn: no longer in the corpus)" if citation.withdrawn else ""
    quote = " ".join(citation.quote.split())
    head = words(f"[{citation.marker}] ", "bold")
    return indented(head.append_text(words(f'{citation.title}{place}{withdrawn}: "{quote}"')))


def _step(step: Step, points: Mapping[str, MemoryPoint]) -> Iterator[RenderableType]:
    plan = f", then judged {step.judgement}" if step.judgement else ""
    yield _bold(f"step {step.number}: looked {_where(step)}{plan} ({step.seconds:.2f} s)")
    for one in step.retrieved:
        found = f"{len(one.entities)} entities, {len(one.relations)} relations, {len(one.chunks)} chunks"
        yield indented(f"asked {one.subquery.text}", 2)
        if one.subquery.concern and one.subquery.concern != one.subquery.text:
            yield indented(f"concern: {one.subquery.concern}", 4)
        if one.subquery.targets:
            yield indented(f"about {', '.join(one.subquery.targets)}", 4)
        yield indented(words(f"found {found}", "dim"), 4)
    for operation in step.operations:
        yield _operation(operation, points)
    for note in step.notes:
        yield indented(f"note: {note}", 2)


def _where(step: Step) -> str:
    kinds = Counter(one.subquery.strategy for one in step.retrieved) or Counter([step.strategy])
    return " and ".join(sorted({"local": "around its points", "global": "across the corpus"}[kind] for kind in kinds))


def _operation(operation: Operation, points: Mapping[str, MemoryPoint]) -> RenderableType:
    line = words(DONE[operation.kind], "bold" if operation.kind == "merge" else "")
    line.append_text(words(f" {operation.point}" if operation.point else ""))
    if operation.parts:
        line.append_text(words(f" from {', '.join(operation.parts)}"))
    if operation.reason:
        line.append_text(words(f" ({operation.reason})"))
    if operation.point in points and operation.kind != "drop":
        line.append_text(words(f": {one_line(points[operation.point].description)}"))
    return indented(line, 2)


def _points(points: list[MemoryPoint], step: int) -> Iterator[RenderableType]:
    if not points:
        yield indented("nothing is remembered as a point")
        return
    yield _bold(f"alive at the end of step {step}: {len(points)} point{'s' * (len(points) != 1)}")
    for point in points:
        names = [entity.name for entity in point.entities]
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        chunks = f"{len(point.chunks)} chunk{'s' * (len(point.chunks) != 1)}"
        yield indented(words(f"{point.uid}  ", "bold").append_text(words(one_line(point.description), "not bold")), 2)
        yield indented(words(f"{' · '.join(names[:NAMES])}{more}; since step {point.born}, {chunks}", "dim"), 4)


def _browser(memory: str, *, points: bool, step: int | None) -> Iterator[RenderableType]:
    yield indented("See it in Neo4j Browser (`hgmem up` says where): paste")
    # One line that no terminal may break: it is there to be copied.
    yield Text(f"  {picture(memory, points=points, step=step)}", no_wrap=True, overflow="ignore")


def _grow(tree: Tree, lineage: Lineage) -> None:
    for part in lineage.parts:
        _grow(tree.add(_born(part)), part)


def _born(lineage: Lineage) -> Text:
    point = lineage.point
    head = words(f"{point.uid}", "bold")
    died = "" if point.died is None else f", until step {point.died}"
    head.append_text(words(f"  {DONE[lineage.kind]} at step {point.born}{died}\n", "not bold"))
    head.append_text(words(one_line(point.description), "not bold"))
    names = " · ".join(entity.name for entity in point.entities[:NAMES])
    return head.append_text(words(f"\n{names}", "not bold dim"))


def _model(name: str) -> str:
    return "answered without a language model (extractive)" if name == EXTRACTIVE else f"answered by {name}"


def _when(time: str) -> str:
    return f"{time[:10]} {time[11:16]}".strip()


def _bold(text: str) -> Text:
    return words(text, "bold")
