"""The guide that Neo4j Browser plays: slides that walk through one memory, each query a click that shows something."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import TypeAlias

from hgmem.browser.favourites import favourites
from hgmem.graph.painting import Pictured
from hgmem.model import PRUNED, PRUNING, Memory
from hgmem.resources import resource

Values: TypeAlias = Mapping[str, str | int]

_PLACE = re.compile(r"\{\{([\w-]+)\}\}")
_SLIDE = re.compile(r"<!-- (\w+) -->\n(<slide.*?</slide>\n)\n", re.DOTALL)
_LONGEST = 400  # characters of an answer that are shown
_MOST_STEPS = 12  # of the last ones
_NAIVE = "naive"  # the system whose memories have no points, and end with their answer


def guide(memory: Memory, drawn: Pictured, *, style: str) -> str:
    """Return the guide (HTML as Browser's `:play` takes it) of a memory; `style` is the address of the style.

    Slides and queries that would show nothing of this memory are left out.
    """
    values = _values(memory)
    slides = _slides(memory, drawn)
    parts = {
        "question": escape(_asked(memory)),
        "about": escape(f"Memory {memory.uid} of corpus {memory.corpus}: {_counted(memory)}."),
        "what": escape(_what(memory, drawn)),
        "slides": str(len(slides)),
        "style": runnable(f":style {style}"),
        "parameters": runnable(f":params {_map(values)}"),
        "schema": _query("schema", values),
        "steps": "\n".join(_steps(memory, drawn, values)),
        "answer": escape(_said(memory)),
        "limits": _limits(drawn),
        "onward": _onward(memory),
        **_pictures(memory, drawn, values),
    }
    template = resource("cypher", "browser", "guide.html").read_text(encoding="utf-8")
    kept = _SLIDE.sub(lambda found: found[2] if found[1] in slides else "", template)
    return _PLACE.sub(lambda found: parts[found[1]], kept)


def runnable(command: str) -> str:
    """Return a block that a click puts into Browser's editor."""
    return f'<pre class="pre-scrollable code runnable">{escape(command.strip())}</pre>'


def newest_merge(memory: Memory) -> str:
    """Return the uid of the point that was merged last, else of the one that was revised last, else `''`."""
    born = [one for step in reversed(memory.steps) for one in reversed(step.operations) if one.parts]
    kinds = sorted((one for one in born if one.kind in ("merge", "revise")), key=lambda one: one.kind)
    return kinds[0].point if kinds else ""


def _values(memory: Memory) -> Values:
    point = "" if memory.status == PRUNING else newest_merge(memory)  # which may be gone already
    return {"memory": memory.uid, "since": max(memory.step - 1, 0), "step": memory.step, "point": point}


def _slides(memory: Memory, drawn: Pictured) -> set[str]:
    """Return the names of the slides that have something to show."""
    optional = {"steps": memory.steps, "growth": drawn.lineage or drawn.bridges, "answer": memory.answers}
    return {"question", "corpus", "onward"} | {name for name, there in optional.items() if there}


def _query(name: str, values: Values) -> str:
    return runnable(favourites()[name].filled(**values))


def _pictures(memory: Memory, drawn: Pictured, values: Values) -> dict[str, str]:
    """Return, by favourite, what is said of a picture and the query that draws it, or what is said in its place."""
    whole = "The last point that came of others, and everything that went into it:"
    supported = ", and the living points that rest on the same chunks" if drawn.alive(memory.step) else ""
    told = {
        "corpus-overview": (drawn.overview, "The entities that most chunks name, with their documents:"),
        "lineage-of-points": (drawn.lineage, whole if values["point"] else "What became of what:"),
        "bridges": (drawn.bridges, "Bridges, the entities that several living points share:"),
        "evidence-of-an-answer": (
            drawn.evidence,
            f"The quotes of all answers so far, the chunks that they are cut from{supported}:",
        ),
        "not-covered-yet": (drawn.uncovered, "The entities around memory that no living point involves:"),
    }
    without = {
        "corpus-overview": "<p>No chunk of this corpus names an entity.</p>",
        "evidence-of-an-answer": "<p>It has no quote whose chunk is in the corpus.</p>",
    }
    return {
        name: f"<p>{said}</p>{_query(name, values)}" if there else without.get(name, "")
        for name, (there, said) in told.items()
    }


def _steps(memory: Memory, drawn: Pictured, values: Values) -> Iterator[str]:
    for step in memory.steps[-_MOST_STEPS:]:
        at = {**values, "since": step.number - 1, "step": step.number}
        asked = "; ".join(one.subquery.text for one in step.retrieved) or step.question
        yield f"<h4>Step {step.number}, {escape(step.strategy)}</h4>\n<p>Asked: {escape(asked)}</p>"
        if drawn.alive(step.number):
            yield f"<p>Memory at its end:</p>{_query('memory-at-a-step', at)}"
        else:
            found = len({hit.uid for one in step.retrieved for hit in one.chunks})
            yield f"<p>It found {_plural(found, 'chunk')}; no point was alive at its end.</p>"
        if step.number > 1 and step.number in drawn.births:
            yield f"<p>What changed in it:</p>{_query('changes-between-steps', at)}"


def _map(values: Values) -> str:
    said = (f"{name}: {value if isinstance(value, int) else repr(value)}" for name, value in values.items())
    return f"{{{', '.join(said)}}}"


def _what(memory: Memory, drawn: Pictured) -> str:
    if memory.status == PRUNED:
        return "This memory was pruned: its steps and points were removed, its answers are kept with their quotes."
    if memory.status == PRUNING:
        return "This memory is being pruned: part of it is gone already."
    if drawn.births:
        return (
            "Each step of the investigation left its traces in this database: memory points, statements that tie "
            "several entities together."
        )
    if memory.system == _NAIVE:
        return "The system naive answers from the chunks that are nearest to the question, and makes no points."
    return "None of its steps led to a memory point." if memory.steps else "This memory took no steps yet."


def _limits(drawn: Pictured) -> str:
    if not drawn.uncovered:
        return "<h3>And then</h3>"
    return (
        "<h3>What is not covered yet</h3>\n"
        "<p>Global exploration looks where memory has nothing: V<sub>G</sub> − V<sub>M</sub>.</p>"
    )


def _onward(memory: Memory) -> str:
    """Return what can be done with the memory: some can't go on."""
    uid = escape(memory.uid)
    page = f"hgmem memory export {uid} --html memory.html"
    if memory.system == _NAIVE or memory.status in (PRUNED, PRUNING):
        return f'<p>This memory can\'t go on with another question. As one page:</p>\n<pre class="code">{page}</pre>'
    return (
        "<p>The memory goes on with another question, and replays as one page:</p>\n"
        f'<pre class="code">hgmem ask "…" --continue {uid}\n{page}</pre>'
    )


def _asked(memory: Memory) -> str:
    if memory.answers:
        return memory.answers[-1].question
    return memory.steps[-1].question if memory.steps else "No question was answered yet."


def _counted(memory: Memory) -> str:
    if memory.status == PRUNED:
        return "its answers alone are kept, status pruned"
    steps, points = _plural(len(memory.steps), "step"), _plural(len(memory.points), "living point")
    return f"{steps}, {points}, status {memory.status}"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _said(memory: Memory) -> str:
    text = memory.answers[-1].text if memory.answers else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"
