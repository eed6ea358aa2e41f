"""Terminal output: wrapped and styled text, answers, memories, lineages, and the query that draws a memory."""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from hgmem.cli.output import clean, cut, one_line, when
from hgmem.text.language import counted
from hgmem.values.as_json import written
from hgmem.values.evidence import BuiltHit, Retrieved, Strategy
from hgmem.values.graph_elements import with_others
from hgmem.values.records import (
    PRUNED,
    UNANSWERED,
    Answer,
    Citation,
    CitedText,
    Lineage,
    Memory,
    MemoryPoint,
    Operation,
    Step,
)
from hgmem.values.systems import SystemInfo
from hgmem.values.usage import Usage

UNLIMITED = 1_000  # columns where the output is not a terminal
WIDEST = 100  # columns of running text, for readability
EXTRACTIVE = "extractive"
DONE = {"insert": "inserted", "revise": "revised", "merge": "merged", "retire": "retired", "drop": "dropped"}
_WAYS = {"global": "across the corpus", "local": "around its points"}
QUOTES = {
    "in_document": "; the sentence still stands in the document",
    "not_in_document": "; no longer in the document",
    "document_deleted": "; the document was deleted",
    None: "",
}
NAMED = 30  # characters of a strategy or kind of another system
BUILT = 8  # rows of a build that are shown for a sub-query
NAMES = 12  # entities of a point that are named
SAID = 160  # characters of a point's description within a step, while the list of points shows all of it
_TRAILING = re.compile(r" +$", re.MULTILINE)
_POINTS = "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(:Entity)"
_NOW = " WHERE p.died IS NULL"
_ACTIVE_AT = " WHERE p.born <= {step} AND (p.died IS NULL OR p.died > {step})"
_CITED = (
    "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(:Chunk)"
)


def print_result(value: object, *parts: RenderableType, as_json: bool) -> None:
    """Print a result: its value, which may have dataclasses in it, as JSON, or its parts for people."""
    if as_json:
        print(written(value, indent=2))
    else:
        show(*parts)


def show(*parts: RenderableType) -> None:
    """Print parts of a result, wrapped to the terminal's width. Plain strings are printed unwrapped, for copying."""
    width = shutil.get_terminal_size((UNLIMITED, 50)).columns
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(clean(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    print(_TRAILING.sub("", captured.get()), end="")


def words(*parts: str | tuple[str, str]) -> Text:
    """Return escaped text of the parts in order, each with an optional style."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((clean(text), style) for text, style in pairs))


def indented(text: Text | str, by: int = 0) -> RenderableType:
    """Return indented running text, limited to a readable width."""
    shown = words(text) if isinstance(text, str) else text
    return Constrain(Padding(shown, (0, 0, 0, by)), WIDEST)


def way(strategy: Strategy) -> str:
    """Return how a step searched, to follow "searched" or "found"."""
    return _WAYS.get(strategy, f"by {cut(strategy, NAMED)}")


def found(hits: tuple[int, int, int], built: Iterable[BuiltHit]) -> str:
    """Return in words how many entities, relations and chunks a search found, and rows of a build by kind."""
    entities, relations, chunks = hits
    named = {"entity entities": entities, "relation relations": relations, "chunk chunks": chunks}
    texts = [counted(number, *what.split()) for what, number in named.items() if number]
    kinds = Counter(hit.kind for hit in built)
    texts += [f"{number} of kind {cut(kind, NAMED)}" for kind, number in sorted(kinds.items())]
    return ", ".join(texts) or "nothing"


def answered(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer, its citations, a summary of how it was found, and how to show its memory."""
    yield from _with_quotes(answer)
    steps = counted(answer.step, "step")
    if answer.step < len(answer.steps):
        steps = f"as of step {answer.step} of {len(answer.steps)}"
    if answer.steps and answer.steps[-1].filters:
        yield indented(
            f"only {_filtered(answer.steps[-1])}; continuing the memory keeps this filter: remove it "
            "with --where 'title=*'"
        )
    usage, cost = answer.usage, ""
    if usage.requests:
        calls = counted(usage.requests, "call")
        cost = f"{calls}, {usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out, "
    yield indented(f"{steps}, {_model(answer.model)}, {cost}{answer.seconds:.1f} s, memory {answer.memory}")
    earlier = answer.step if answer.step < len(answer.steps) else None
    yield from _browser(answer.memory, points=bool(answer.points), step=earlier)


def cited(found: CitedText) -> Iterator[RenderableType]:
    """Yield a text with its citations as an answer's, and how to show its memory."""
    yield from _with_quotes(found)
    if found.memory:
        yield indented(f"memory {found.memory}: see it with `hgmem memory show {found.memory}`")


def remembered(answer: Answer) -> Iterator[RenderableType]:
    """Yield every step of a question, then the active points and the heading of the answer."""
    yield from _steps(
        [step for step in answer.steps if step.number <= answer.step],
        _Names(memory=answer.memory, points=answer.points),
    )
    if _keeps_points(answer.points, answer.steps):
        yield from _points([point for point in answer.points if point.alive(answer.step)], answer.step)
    yield heading("answer (quotes only)" if answer.model == EXTRACTIVE else "answer")


def stored(memory: Memory, *, system: SystemInfo) -> Iterator[RenderableType]:
    """Yield a stored memory: its steps, points and answers up to the requested step. `system` is the memory's."""
    yield heading(f"memory {memory.uid}")
    owner = f", owner {one_line(memory.owner)}" if memory.owner else ""
    state = f"{memory.status}{owner}, since {when(memory.created_at)}"
    yield indented(f"corpus {memory.corpus}, system {memory.system}, {state}")
    if memory.forked_from:
        yield indented(f"forked from memory {memory.forked_from} at the end of its step {memory.forked_at}")
    yield ""
    known = [*memory.points, *(point for answer in memory.answers for point in answer.points)]
    if memory.status == PRUNED:
        yield indented("Its steps and points were pruned; its answers were kept.")
        yield ""
    else:
        yield from _steps(memory.steps, _Names(memory=memory.uid, points=known))
        if _keeps_points(known, memory.steps):
            yield from _points(memory.points, memory.step)
    for answer in memory.answers:
        yield heading(f"answer as of step {answer.step}, {_model(answer.model)}")
        yield indented(answer.question, 2)
        yield indented(answer.text, 2)
        yield from map(_citation, answer.citations)
        yield ""
    if memory.status == UNANSWERED and system.continues:
        yield indented(f"No answer was requested: write it with `hgmem ask --continue {memory.uid}`.")
        yield ""
    yield from _browser(memory.uid, points=bool(memory.points), step=memory.step)


def ancestry(lineage: Lineage) -> RenderableType:
    """Return a point's lineage as a tree."""
    into = f"became {', '.join(lineage.into)}\n" if lineage.into else ""
    tree = Tree(Group(into, _born(lineage)) if into else _born(lineage), guide_style="dim")
    _grow(tree, lineage)
    return Constrain(tree, WIDEST)


def spent(usage: Usage) -> Iterator[RenderableType]:
    """Yield the cost of a question by kind, and by statement or task, the slowest first."""
    yield ""
    for kind, calls in usage.calls.items():
        seconds = usage.seconds.get(kind, {})
        slowest = sorted(calls, key=lambda name: -seconds.get(name, 0.0))
        which = ", ".join(f"{name} {seconds.get(name, 0.0):.2f} s in {calls[name]}" for name in slowest)
        texts = f", {counted(usage.texts[kind], 'text')}" if kind in usage.texts else ""
        yield indented(f"{kind}: {sum(calls.values())} calls{texts}, {sum(seconds.values()):.2f} s ({which})")
    for task, tokens in usage.tokens.items():
        which = ", ".join(f"{number:,} {kind}" for kind, number in tokens.items() if number)
        yield indented(f"tokens of {task}: {which}")


def _with_quotes(one: Answer | CitedText) -> Iterator[RenderableType]:
    yield indented(one.text)
    yield ""
    if one.citations:
        yield from map(_citation, one.citations)
        yield ""
    for note in one.notes:
        yield indented(f"note: {note}")


def _citation(citation: Citation) -> RenderableType:
    place = "" if citation.start is None else f" ({citation.start}–{citation.end})"
    said = f", {citation.attribution}" if citation.attribution else ""
    withdrawn = f" (withdrawn{QUOTES[citation.quote_status]})" if citation.withdrawn else ""
    quote = " ".join(citation.quote.split())
    return indented(words((f"[{citation.marker}] ", "bold"), f'{citation.title}{place}{said}{withdrawn}: "{quote}"'))


class _Names:
    """Short names of a memory's points, without the memory's uid as prefix."""

    def __init__(self, *, memory: str, points: Iterable[MemoryPoint]) -> None:
        self._prefix = f"{memory}-"
        self._points = {point.uid: point for point in points}

    def __call__(self, *uids: str) -> str:
        return ", ".join(uid.removeprefix(self._prefix) for uid in uids)

    def description_of(self, uid: str) -> str:
        """Return the beginning of a point's description."""
        return cut(self._points[uid].description, SAID) if uid in self._points else ""


def _steps(steps: Sequence[Step], names: _Names) -> Iterator[RenderableType]:
    places = {hit.uid: hit.text for step in steps for one in step.retrieved for hit in one.built}
    for step in steps:
        plan = f", then judged {step.judgement}" if step.judgement else ""
        yield heading(f"step {step.number}: searched {_where(step)}{plan} ({step.seconds:.2f} s)")
        if step.filters:
            yield indented(_filtered(step), 2)
        for one in step.retrieved:
            yield from _asked(one, names, places)
        for operation in step.operations:
            yield _operation(operation, names)
        if step.premise:
            yield indented(words(("contradicted ", "bold"), step.premise), 2)
        for lacking in step.open:
            yield indented(words(("open ", "bold"), lacking), 2)
        for note in step.notes:
            yield indented(f"note: {note}", 2)
        yield ""


def _filtered(step: Step) -> str:
    return "where " + " and ".join(f"{name} is {' or '.join(texts)}" for name, texts in step.filters.items())


def _where(step: Step) -> str:
    kinds = {one.subquery.strategy for one in step.retrieved} or {step.strategy}
    return " and ".join(way(kind) for kind in sorted(kinds))


def _asked(one: Retrieved, names: _Names, places: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield a sub-query with what it found. A place that a walk entered is told with the one that led there."""
    read = {hit.uid for hit in one.built if hit.source == hit.uid}  # places whose own text was read, beside the arrival
    built = [hit for hit in one.built if hit.source != hit.uid] or one.built
    moved = bool(built) and all(hit.source for hit in built)
    head = "asked" if not moved else "went to" if len(built) == 1 else "followed"
    yield indented(words((f"{head} ", "dim"), one.subquery.text), 2)
    if one.subquery.concern and one.subquery.concern != one.subquery.text:
        yield indented(f"{'why' if head == 'went to' else 'concern'}: {one.subquery.concern}", 4)
    about = f"about {names(*one.subquery.targets)}; " if one.subquery.targets else ""
    numbers = (len(one.entities), len(one.relations), len(one.chunks))
    yield indented(words((f"{about}found {found(numbers, built)}", "dim")), 4)
    for hit in built[:BUILT]:
        origin = places.get(hit.source, "") if hit.source != hit.uid else ""
        came = (f"{cut(origin, NAMED)} → ", "dim") if origin else ""
        kind = f"{cut(hit.kind, NAMED)}{', read' if hit.uid in read else ''}: "
        yield indented(words((kind, "dim"), came, cut(hit.text, SAID)), 4)
    if len(built) > BUILT:
        yield indented(words((f"and {len(built) - BUILT} more", "dim")), 4)


def _operation(operation: Operation, names: _Names) -> RenderableType:
    parts = f"{' from' if operation.point else ''} {names(*operation.parts)}" if operation.parts else ""
    reason = f" ({operation.reason})" if operation.reason else ""
    said = names.description_of(operation.parts[0] if operation.kind == "retire" else operation.point)
    head = f"{DONE[operation.kind]} {names(operation.point)}".rstrip()
    return indented(words((head, "bold"), f"{parts}{reason}{': ' if said else ''}{said}"), 2)


def _keeps_points(points: Sequence[MemoryPoint], steps: Sequence[Step]) -> bool:
    """Whether a memory has points, or its steps at least planned or tried some. Not all systems keep points."""
    return bool(points) or any(step.planned or step.operations for step in steps)


def _points(points: Sequence[MemoryPoint], step: int) -> Iterator[RenderableType]:
    number = counted(len(points), "point") if points else "no points"
    yield heading(f"active at the end of step {step}: {number}")
    for point in points:
        yield indented(words((f"{point.uid}  ", "bold"), _statement(point)), 2)
        yield indented(words((f"{entities_of(point)}; since step {point.born}, {support(point)}", "dim")), 4)
    classes = {entity.thing: entity for point in points for entity in point.entities if entity.names}
    for entity in classes.values():
        yield indented(words((with_others(entity.shown, entity.names), "dim")), 2)
    yield ""


def support(point: MemoryPoint) -> str:
    """Return how many chunks support the point, and how many of them are gone."""
    if point.unsupported:
        return "no longer supported: all its chunks were deleted or changed"
    gone = f", {len(point.deleted_chunks)} more deleted or changed" if point.deleted_chunks else ""
    return f"{counted(len(point.chunks), 'chunk')}{gone}"


def entities_of(point: MemoryPoint) -> str:
    """Return the names of the first entities of a point, and how many more there are."""
    names = [entity.name for entity in point.entities]
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{' · '.join(names[:NAMES])}{more}"


def _browser(memory: str, *, points: bool, step: int | None) -> Iterator[RenderableType]:
    yield indented(f"See it in Neo4j Browser: `hgmem browser {memory}`, or paste")
    yield f"  {picture(memory, points=points, step=step)}"


def picture(memory: str, *, points: bool = True, step: int | None = None) -> str:
    """Return the query that draws a memory: the points active now, or at the end of `step`, with their entities.

    A memory without points, such as that of another system, is drawn as its answer with the cited chunks.
    """
    uid = memory.replace("\\", "\\\\").replace("'", "\\'")
    if not points:
        return f"{_CITED.format(uid=uid)} RETURN path"
    active = _NOW if step is None else _ACTIVE_AT.format(step=step)
    return f"{_POINTS.format(uid=uid)}{active} RETURN path"


def _grow(tree: Tree, lineage: Lineage) -> None:
    for part in lineage.parts:
        _grow(tree.add(_born(part)), part)


def _born(lineage: Lineage) -> Text:
    point = lineage.point
    died = "" if point.died is None else f", until step {point.died}"
    died += f", retired: {point.retired}" if point.retired else ""
    died += f", copied from {lineage.copied_from}" if lineage.copied_from else ""
    return words(
        (point.uid, "bold"),
        f"  {DONE[lineage.kind]} at step {point.born}{died}\n{_statement(point)}\n",
        (f"{entities_of(point)}{f'; {support(point)}' if point.deleted_chunks else ''}", "dim"),
    )


def _statement(point: MemoryPoint) -> str:
    return f"{one_line(point.description)}{' (inferred)' * point.inferred}"


def _model(name: str) -> str:
    return "answered without a language model (extractive)" if name == EXTRACTIVE else f"answered by {name}"


def heading(text: str) -> Text:
    """Return a line in bold."""
    return words((text, "bold"))
