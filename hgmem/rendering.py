"""How memory and evidence read in a prompt: compact, numbered, and every text of others as quoted material."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hgmem.fences import quoted
from hgmem.model import Chunk, Entity, Evidence, MemoryPoint, Relation
from hgmem.text import collapse
from hgmem.tokens import count

DESCRIPTION_TOKENS = 100  # of an entity or a relation (the official code's value)
NONE = "(none)"
_tokens = lru_cache(maxsize=4_096)(count)  # of words, most of which come again
_NUMBERED = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")  # in a text, it would look like a number of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The points of memory that a prompt shows, numbered from 0, and how many more there are."""

    points: tuple[MemoryPoint, ...] = ()
    more: int = 0


def text(value: str) -> str:
    """Return a text of others, such as a question, on lines of its own."""
    return quoted(value.strip())


def language(name: str) -> str:
    """Return in which language to write."""
    return name or "the language of the question"


def listed(texts: Iterable[str]) -> str:
    """Return texts as a list, a line each."""
    return "\n".join(f"- {_line(text)}" for text in texts) or NONE


def asked(subqueries: Sequence[str]) -> str:
    """Return what a round asked of the documents; where nothing else is named, that is the question."""
    return listed(subqueries) if subqueries else "(the question itself)"


def memory(shown: Shown, *, numbered: bool = True) -> str:
    """Return the points, each with its number, where a reply may name it, and its entities."""
    lines = [
        f"{f'[{number}]' if numbered else '-'} {_line(point.description)} — "
        + "; ".join(_line(entity.name) for entity in point.entities)
        for number, point in enumerate(shown.points)
    ]
    if shown.more:
        lines.append(f"(and {shown.more} more points that are not shown)")
    return "\n".join(lines) or "(empty)"


def evidence(found: Evidence) -> str:
    """Return what was retrieved: entities, relations, and chunks numbered from 0."""
    parts = []
    if found.entities:
        parts.append("Entities\n" + entities(found.entities))
    if found.relations:
        parts.append("Relations\n" + "\n".join(map(_relation, found.relations)))
    if found.chunks:
        parts.append("Chunks\n" + chunks(found.chunks))
    return "\n\n".join(parts) or NONE


def entities(found: Sequence[Entity]) -> str:
    """Return entities, a line each, with type and the beginning of the description."""
    lines = []
    for entity in found:
        kind = f" ({_line(entity.type)})" if entity.type else ""
        said = f": {_short(entity.description)}" if entity.description else ""
        lines.append(f"- {_line(entity.name)}{kind}{said}")
    return "\n".join(lines) or NONE


def chunks(found: Sequence[Chunk], *, start: int = 0) -> str:
    """Return chunks with their numbers, from `start`, and the titles of their documents."""
    parts = []
    for number, chunk in enumerate(found, start=start):
        title = f" {_line(chunk.title)}" if chunk.title else ""
        text = _NUMBERED.sub(r"‹\1›", quoted(chunk.text.strip()))
        parts.append(f"[{number}]{title}\n{text}")
    return "\n\n".join(parts) or NONE


def _relation(relation: Relation) -> str:
    keywords = f" ({_line(', '.join(relation.keywords))})" if relation.keywords else ""
    ends = f"{_line(relation.source_name)} — {_line(relation.target_name)}"
    return f"- {ends}{keywords}: {_short(relation.description)}"


def _short(description: str) -> str:
    """Return the description's beginning, whole words of about so many tokens."""
    kept: list[str] = []
    left = DESCRIPTION_TOKENS
    for word in description.split():
        left -= _tokens(word)
        if left < 0:
            return quoted(" ".join(kept)) + " …"
        kept.append(word)
    return quoted(" ".join(kept))


def _line(value: str) -> str:
    return quoted(collapse(value))
