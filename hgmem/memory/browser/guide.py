"""The guide for Neo4j Browser: slides that walk through one memory with clickable queries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TypeAlias

from hgmem.graph.painting import Pictured
from hgmem.memory.browser.favourites import Favourite, favourites
from hgmem.text.language import counted
from hgmem.text.resources import resource
from hgmem.text.segmentation import clipped
from hgmem.values.records import PRUNED, PRUNING, Memory, Step
from hgmem.values.systems import SystemInfo

Values: TypeAlias = Mapping[str, str | int]

_PLACE = re.compile(r"\{\{([\w-]+)\}\}")
_BLOCK = re.compile(r"<!-- if (not )?(\w+) -->\n?((?:(?!<!-- if ).)*?)<!-- end -->\n?", re.DOTALL)
_LONGEST = 400  # characters of an answer, or of a built row, that are shown
_MOST_BUILT = 8  # built rows of a step that are shown
_MOST_STEPS = 12  # the number of latest steps that are shown


def guide(memory: Memory, drawn: Pictured, *, style: str, system: SystemInfo, own: Sequence[Favourite] = ()) -> str:
    """Return the guide of a memory, as HTML for Browser's `:play`.

    `system` is the memory's, `own` are its favourites, `style` is the address of the style. Blocks of the template stay
    where what they name is there, or `not` there: slides and queries of ours without results are left out.
    """
    values = _values(memory)
    parameters = ", ".join(f"{name}: {value!r}" for name, value in values.items())
    flags = {
        **{
            name: getattr(drawn, name)
            for name in ("lineage", "evidence", "bridges", "uncovered", "overview", "classes", "difference")
        },
        "steps": memory.steps,
        "growth": drawn.lineage or drawn.bridges,
        "answer": memory.answers,
        "forked": memory.forked_from,
        "system": own,
        "points": drawn.births,
        "point": values["point"],
        "active": drawn.has_active_points(memory.step),
        "continues": system.continues and memory.status not in (PRUNED, PRUNING),
    }
    template = resource("cypher", "browser", "guide.html").read_text(encoding="utf-8")
    while _BLOCK.search(template):  # from the inside out
        template = _BLOCK.sub(lambda found: found[3] if bool(flags[found[2]]) is not bool(found[1]) else "", template)
    parts = {
        "question": escape(_question(memory)),
        "memory": escape(memory.uid),
        "original": escape(f"{memory.forked_from} at the end of its step {memory.forked_at}"),
        "about": escape(f"Memory {memory.uid} of corpus {memory.corpus}: {_counted(memory, drawn)}."),
        "what": escape(_what(memory, drawn, system)),
        "slides": str(template.count("<slide")),
        "style": runnable(f":style {style}"),
        "parameters": runnable(f":params {{{parameters}}}"),
        "steps": "\n".join(_steps(memory, drawn, values)),
        "answer": escape(clipped(memory.answers[-1].text, _LONGEST)) if memory.answers else "",
        "system": escape(f"System {system.name}: {system.summary}"),
        "favourites": "\n".join(f"<p>{escape(one.title)}:</p>{runnable(one.filled(**values))}" for one in own),
    }
    for name, favourite in favourites().items():
        parts.setdefault(name, runnable(favourite.filled(**values)))
    return _PLACE.sub(lambda found: parts[found[1]], template)


def runnable(command: str) -> str:
    """Return a block that Browser puts into its editor on a click."""
    return f'<pre class="pre-scrollable code runnable">{escape(command.strip())}</pre>'


def newest_merge(memory: Memory) -> str:
    """Return the uid of the latest merged point, else of the latest revised one, else `''`."""
    born = [one for step in reversed(memory.steps) for one in reversed(step.operations) if one.parts]
    kinds = sorted((one for one in born if one.kind in ("merge", "revise")), key=lambda one: one.kind)
    return kinds[0].point if kinds else ""


def _values(memory: Memory) -> Values:
    point = "" if memory.status == PRUNING else newest_merge(memory)  # a memory being pruned may have lost its points
    return {
        "memory": memory.uid,
        "corpus": memory.corpus,
        "since": max(memory.step - 1, 0),
        "step": memory.step,
        "point": point,
        "other": memory.forked_from,
    }


def _query(name: str, values: Values) -> str:
    return runnable(favourites()[name].filled(**values))


def _steps(memory: Memory, drawn: Pictured, values: Values) -> Iterator[str]:
    for step in memory.steps[-_MOST_STEPS:]:
        at = {**values, "since": step.number - 1, "step": step.number}
        asked = "; ".join(one.subquery.text for one in step.retrieved) or step.question
        yield f"<h4>Step {step.number}, {escape(step.strategy)}</h4>\n<p>Asked: {escape(asked)}</p>"
        if drawn.has_active_points(step.number):
            yield f"<p>Memory at its end:</p>{_query('memory-at-a-step', at)}"
        else:
            found = len({hit.uid for one in step.retrieved for hit in one.chunks})
            without = "; no point was active at its end" if drawn.births or step.operations or step.judgement else ""
            yield f"<p>It found {counted(found, 'chunk')}{without}.</p>"
        yield from _built(step)
        if step.number > 1 and step.number in drawn.births:
            yield f"<p>What changed in it:</p>{_query('changes-between-steps', at)}"


def _built(step: Step) -> Iterator[str]:
    """Yield what a step found of its system's build, each row once."""
    hits = {hit.uid: hit for one in step.retrieved for hit in one.built}
    if hits:
        shown = list(hits.values())[:_MOST_BUILT]
        items = "".join(f"<li>{escape(hit.kind)}: {escape(clipped(hit.text, _LONGEST))}</li>" for hit in shown)
        more = f"<li>and {len(hits) - _MOST_BUILT} more</li>" if len(hits) > _MOST_BUILT else ""
        yield f"<p>Of what its system had built, as it was then:</p>\n<ul>{items}{more}</ul>"


def _what(memory: Memory, drawn: Pictured, system: SystemInfo) -> str:
    if memory.status == PRUNED:
        return "This memory was pruned: its steps and points were removed; its answers and quotes are kept."
    if memory.status == PRUNING:
        return "This memory is being pruned: part of it is already deleted."
    if drawn.births:
        return (
            "Each step of the investigation is stored in this database as memory points: statements that "
            "connect several entities."
        )
    if not system.continues:
        return f"System {system.name}: {system.summary}"
    return "None of its steps created a memory point." if memory.steps else "This memory has no steps yet."


def _question(memory: Memory) -> str:
    if memory.answers:
        return memory.answers[-1].question
    return memory.steps[-1].question if memory.steps else "No question has been answered yet."


def _counted(memory: Memory, drawn: Pictured) -> str:
    if memory.status == PRUNED:
        return "only its answers are kept, status pruned"
    steps, points = counted(len(memory.steps), "step"), counted(len(memory.points), "active point")
    return ", ".join((steps, *([points] if drawn.births else []), f"status {memory.status}"))
