"""The guide that Neo4j Browser plays: slides that walk through one memory, each query a click."""

import re
from collections.abc import Iterator, Mapping
from html import escape

from hgmem.browser.favourites import Favourite, favourites
from hgmem.model import Memory
from hgmem.resources import resource

_PLACE = re.compile(r"\{\{([\w-]+)\}\}")
_LONGEST = 400  # characters of an answer that are shown
_MOST_STEPS = 12  # of the last ones


def guide(memory: Memory, *, style: str) -> str:
    """Return the guide (HTML as Browser's `:play` takes it) of a memory; `style` is the address of the style."""
    known = favourites()
    point = newest_merge(memory)
    values: dict[str, str | int] = {
        "memory": memory.uid,
        "since": max(memory.step - 1, 0),
        "step": memory.step,
        "point": point,
    }
    parts = {
        "question": escape(_asked(memory)),
        "about": escape(f"Memory {memory.uid} of corpus {memory.corpus}: {_counted(memory)}, status {memory.status}."),
        "style": runnable(f":style {style}"),
        "parameters": runnable(f":params {_map(values)}"),
        "steps": "\n".join(_steps(memory, known, values)),
        "lineage-said": "The last merged point, and everything that went into it:" if point else "What became of what:",
        "answer": escape(_said(memory)),
        "memory": escape(memory.uid),
        **{name: runnable(one.filled(**values)) for name, one in known.items()},
    }
    template = resource("cypher", "browser", "guide.html").read_text(encoding="utf-8")
    return _PLACE.sub(lambda found: parts[found[1]], template)


def runnable(command: str) -> str:
    """Return a block that a click puts into Browser's editor."""
    return f'<pre class="pre-scrollable code runnable">{escape(command.strip())}</pre>'


def newest_merge(memory: Memory) -> str:
    """Return the uid of the point that was merged last, else of the one that was revised last, else `''`."""
    born = [one for step in reversed(memory.steps) for one in reversed(step.operations) if one.parts]
    kinds = sorted((one for one in born if one.kind in ("merge", "revise")), key=lambda one: one.kind)
    return kinds[0].point if kinds else ""


def _steps(memory: Memory, known: Mapping[str, Favourite], values: Mapping[str, str | int]) -> Iterator[str]:
    if not memory.steps:
        yield "<p>This memory took no steps.</p>"
    for step in memory.steps[-_MOST_STEPS:]:
        at = {**values, "since": step.number - 1, "step": step.number}
        asked = "; ".join(one.subquery.text for one in step.retrieved) or step.question
        yield f"<h4>Step {step.number}, {escape(step.strategy)}</h4>\n<p>Asked: {escape(asked)}</p>"
        yield f"<p>Memory at its end:</p>{runnable(known['memory-at-a-step'].filled(**at))}"
        if step.number > 1:
            yield f"<p>What changed in it:</p>{runnable(known['changes-between-steps'].filled(**at))}"


def _map(values: Mapping[str, str | int]) -> str:
    said = (f"{name}: {value if isinstance(value, int) else repr(value)}" for name, value in values.items())
    return f"{{{', '.join(said)}}}"


def _asked(memory: Memory) -> str:
    if memory.answers:
        return memory.answers[-1].question
    return memory.steps[-1].question if memory.steps else "No question was answered yet."


def _counted(memory: Memory) -> str:
    steps, points = len(memory.steps), len(memory.points)
    return f"{steps} step{'' if steps == 1 else 's'}, {points} living point{'' if points == 1 else 's'}"


def _said(memory: Memory) -> str:
    if not memory.answers:
        return "No answer was given yet."
    text = memory.answers[-1].text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"
