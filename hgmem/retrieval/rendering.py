"""Memory and evidence in prompts: what fits and is new, and its text: compact, numbered, sources delimited."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Annotated, TypeAlias

from hgmem.graph.documents import OpenChunk
from hgmem.models.prompts import quoted
from hgmem.text.segmentation import NamesIn, clipped, collapse
from hgmem.text.tokens import count
from hgmem.values.evidence import CONTINUED, BuiltPassage, Citable, Ended, Evidence
from hgmem.values.graph_elements import MOST_NAMES, Chunk, Entity, Relation, with_others
from hgmem.values.records import MemoryPoint

DESCRIPTION_TOKENS = 100  # per entity or relation (the official code's value)
NONE = "(none)"
LONGEST_TITLE = 160  # characters of a document's title
_LONGEST_OVERLAP = 2_000  # characters, looked for where chunks have no offsets
_SHORTEST_OVERLAP = 20  # a shorter one may be chance
# Caches: most words of descriptions recur, and a step shows the same points several times.
_tokens = lru_cache(maxsize=16_384)(count)
_words = lru_cache(maxsize=16_384)(lambda text: len(text.split()) if text.isascii() else 0)
_NUMBERED = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")  # looks like a citation marker


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMemory:
    """What a prompt shows of memory: numbered points, the number of those left out, and plain statements.

    Points have the `numbers` given, in ascending order, else those from 0. Systems without memory points use
    `statements` for what they have worked out. `same` are names of one entity each, as `same_names` has them. `ended`
    is not shown: it is for answers without a language model.
    """

    points: tuple[MemoryPoint, ...] = ()
    more: int = 0
    statements: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    same: tuple[tuple[str, ...], ...] = ()
    ended: tuple[Ended, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """What is said in it, with the names of the points' entities."""
        said = (text for one in self.points for text in (one.description, *(each.shown for each in one.entities)))
        return (*self.statements, *said)

    @property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """Names of one entity each: `same`, and those of the points' entities."""
        return (*self.same, *{one.names for point in self.points for one in point.entities if one.names})

    @property
    def numbered(self) -> tuple[MemoryPoint | None, ...]:
        """The points at their numbers. A number that no point shown has holds None."""
        by_number = dict(zip(self.numbers_of(range(len(self.points))), self.points, strict=True))
        return tuple(by_number.get(number) for number in range(max(by_number, default=-1) + 1))

    def numbers_of(self, places: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of the points at these places of `points`."""
        return tuple(self.numbers[place] if self.numbers else place for place in places)


def fit_points(
    points: Sequence[MemoryPoint],
    *,
    tokens: int,
    near: Callable[[Sequence[MemoryPoint]], Sequence[float]],
    targets: Collection[str] = (),
) -> PromptMemory:
    """Return the points that fit into `tokens`, in the order of memory, and the number left out.

    Targets (uids) come first, then the newest, then those nearest to the question. `near` is called only if not all
    points fit.
    """
    if fits(points, tokens=tokens):
        return PromptMemory(points=tuple(points))
    nearness = near(points)
    wanted = sorted(
        range(len(points)), key=lambda at: (points[at].uid not in targets, -points[at].born, -nearness[at], at)
    )
    chosen: set[int] = set()
    left = tokens
    for at in wanted:
        if not chosen or (_least(points[at]) <= left and size(points[at]) <= left):
            chosen.add(at)
            left -= size(points[at])
    return PromptMemory(points=tuple(points[at] for at in sorted(chosen)), more=len(points) - len(chosen))


def fits(points: Sequence[MemoryPoint], *, tokens: int) -> bool:
    """Whether all points fit into `tokens`."""
    return all(total <= tokens for total in accumulate(map(size, points)))


def size(point: MemoryPoint) -> int:
    """Return the approximate number of tokens of a point in a prompt."""
    return _tokens(point.description) + sum([_tokens(entity.name) + 1 for entity in point.entities]) + 4


def _least(point: MemoryPoint) -> int:
    """Return a lower bound of `size` without tokenising: an ASCII word has at least one token."""
    return _words(point.description) + len(point.entities) + 4


def trimmed(evidence: Evidence, order: Sequence[str], *, tokens: int) -> Evidence:
    """Return the evidence with the chunks that fit into `tokens`, the first ones (uids) of an order."""
    chunks = {chunk.uid: chunk for chunk in evidence.chunks}
    kept = {chunk.uid for chunk in within([chunks[uid] for uid in order if uid in chunks], tokens=tokens)}
    return replace(evidence, chunks=tuple(chunk for chunk in evidence.chunks if chunk.uid in kept))


def unknown(evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
    """Return the evidence with those lines alone that memory does not hold.

    These are entities outside V_M, and relations that are not entirely inside V_M.
    """
    involved = {entity.thing for point in points for entity in point.entities}
    ends = {each.uid: {*(each.ends or (each.source, each.target))} for each in evidence.relations}
    return replace(
        evidence,
        entities=tuple(entity for entity in evidence.entities if entity.thing not in involved),
        relations=tuple(each for each in evidence.relations if not ends[each.uid] <= involved),
    )


def unsaid(evidence: Evidence, before: Iterable[Chunk]) -> Evidence:
    """Return the evidence without the lines that its own chunks, or those shown before, say.

    These are the relations whose stating chunks are all shown, and the entities of which a chunk nearest to a sub-query
    is.
    """
    visible = {chunk.uid for chunk in (*before, *evidence.chunks)}
    told = {entity for entity, chunks in evidence.nearest.items() if not visible.isdisjoint(chunks)}
    return replace(
        evidence,
        entities=tuple(each for each in evidence.entities if each.uid not in told),
        relations=tuple(each for each in evidence.relations if not each.chunks or not visible.issuperset(each.chunks)),
    )


def within(chunks: Sequence[Chunk], *, tokens: int, least: int = 1) -> list[Chunk]:
    """Return the first chunks that fit into `tokens`, but at least `least`."""
    kept: list[Chunk] = []
    left = tokens
    for chunk in chunks:
        left -= tokens_of(chunk)
        if left < 0 and len(kept) >= least:
            break
        kept.append(chunk)
    return kept


def tokens_of(*chunks: Chunk) -> int:
    """Return the number of tokens of chunks."""
    return sum(chunk.tokens or count(chunk.text) for chunk in chunks)


def text(value: str) -> str:
    """Return a source text, such as a question, escaped and on its own lines."""
    return quoted(value.strip())


def language(name: str) -> str:
    """Return the language to write in."""
    return name or "the language of the question"


Text: TypeAlias = Annotated[str, text]
Language: TypeAlias = Annotated[str, language]


def listed(texts: Iterable[str]) -> str:
    """Return texts as a list, one line each."""
    return "\n".join(f"- {_line(text)}" for text in texts) or NONE


def asked(subqueries: Sequence[str]) -> str:
    """Return the sub-queries of a round. Without any, it asked the question itself."""
    return listed(subqueries) if subqueries else "(the question itself)"


def memory(memory: PromptMemory, found: Sequence[Chunk] = ()) -> str:
    """Return the points with their numbers and entities, and the numbers, from 0, of the chunks that they rest on."""
    numbers = memory.numbers_of(range(len(memory.points)))
    chunks = {chunk.uid: number for number, chunk in enumerate(found)}
    lines = []
    for number, point in zip(numbers, memory.points, strict=True):
        names = "; ".join(_line(entity.shown) for entity in point.entities)
        lines.append(f"({number}) {_said(point)} — {names}{_numbers(point.chunks, chunks)}")
    return _memory(memory, lines)


def remembered(memory: PromptMemory, found: Sequence[Citable]) -> str:
    """Return the points with the numbers, from 1, of the passages that they rest on."""
    lines = statements([(_said(point), point.chunks) for point in memory.points], found)
    return _memory(memory, [f"- {line}" for line in lines])


def _said(point: MemoryPoint) -> str:
    return unmarked(_line(point.description)) + " (inferred)" * point.inferred


def statements(supported: Iterable[tuple[str, Sequence[str]]], found: Sequence[Citable]) -> list[str]:
    """Return statements, each with the numbers, from 1, of the passages among `found` that it rests on (uids)."""
    numbers = {passage.uid: number for number, passage in enumerate(found, start=1)}
    return [f"{unmarked(_line(text))}{_numbers(uids, numbers)}" for text, uids in supported]


def evidence(found: Evidence, *, numbered: bool = True) -> str:
    """Return the evidence: entities, relations, and chunks, if they are `numbered` with those shown before named."""
    start = len(found.shown)
    again = found.again if numbered else ()
    first: dict[str, int] = {}  # number that names a document
    lines = []
    for number, chunk in enumerate(found.shown):
        if chunk in again:
            lines.append(f"[{number}] {heading(chunk, named=first.get(chunk.document))}")
            first.setdefault(chunk.document, number)
    parts = {
        "Entities": entities(found.entities) if found.entities else "",
        "Relations": "\n".join(map(_relation, found.relations)),
        "Chunks": passages(found.chunks, start=start, numbered=numbered) if found.chunks else "",
        "Found again, shown in an earlier round": "\n".join(lines),
    }
    return "\n\n".join(f"{name}\n{text}" for name, text in parts.items() if text) or NONE


def entities(found: Sequence[Entity]) -> str:
    """Return entities, one line each, with its other names, type and shortened description."""
    lines = []
    for entity in found:
        kind = f" ({_line(entity.type)})" if entity.type else ""
        description = unmarked(f": {_short(entity.description)}") if entity.description else ""
        lines.append(
            f"- {_line(with_others(entity.shown, entity.names))}{kind}{description}"
        )  # names stay as they are: replies repeat them
    return "\n".join(lines) or NONE


def passages(found: Sequence[Citable], *, start: int = 0, numbered: bool = True) -> str:
    """Return chunks and built rows with numbers from `start`, if they are `numbered`, and their headings.

    A chunk that follows its neighbour in the document leaves out the words that both hold. A numbered passage refers to
    the number of the one before it instead of naming their document again.
    """
    parts = []
    first = start  # number of the first passage in a row that are of the same document
    for number, (before, each) in enumerate(zip((None, *found), found, strict=False), start=start):
        same = before is not None and _document(before) == _document(each)
        first = first if same else number
        text, named = each.text, first if same and numbered else None
        if isinstance(each, BuiltPassage):
            told = _heading_of_built(each, named)
        else:
            told = heading(each, text=text, named=named)
            if shared := overlap(before, each):
                text = f"{CONTINUED}{text[shared:].lstrip()}"
        text = unmarked(quoted(text.strip()))
        parts.append(f"{f'[{number}]' if numbered else '-'}{' ' * bool(told)}{told}\n{text}")
    return "\n\n".join(parts) or NONE


def _document(passage: Citable) -> tuple[str, str]:
    """Return what two passages of one document have in common."""
    return passage.document, passage.origin or passage.title if isinstance(passage, BuiltPassage) else passage.title


def heading(of: Chunk | OpenChunk, *, text: str = "", named: int | None = None, place: bool = True) -> str:
    """Return what every prompt says of a chunk before its text: title, date and type of its document, and its place.

    - The title is left out if `text` begins with it, date and type if the title tells them. `named` is the number of an
      earlier passage of the document: date and type are not repeated then, and a reference stands for a longer title.
    - The place is the number of the chunk in the document, from 1. It is left out for the first and, without `place`,
      for all: where replies are kept, because insertions move chunks.
    """
    dated = typed = ""
    if named is None:
        shown = clipped(of.title, LONGEST_TITLE)
        dated = "" if _tells(shown, of.date) else of.date
        typed = "" if re.search(rf"\b{re.escape(of.type)}", shown, re.IGNORECASE) else of.type
    parts = ["" if _begins(text, of.title) else _titled(of.title, named), *map(_line, (dated, typed))]
    if place and of.position:
        parts.append(f"chunk {of.position + 1}")
    return ", ".join(filter(None, parts))


def _heading_of_built(passage: BuiltPassage, named: int | None) -> str:
    """Return the title of a built row, unless its text begins with it, or else its kind, and where it is from."""
    title, origin = passage.title, passage.origin
    if title and not _begins(passage.text, title):
        title = _titled(title, None if origin else named)
    else:
        title = _line(passage.kind)
    return f"{title}, from {_referring(origin, named)}" if origin else title


def _begins(text: str, title: str) -> bool:
    return bool(title) and re.match(rf"{re.escape(title)}(?!\w)", text.lstrip()) is not None


def _tells(title: str, date: str) -> bool:
    """Whether a title has the year and the day of a date, or literally a date of year and month."""
    year, day = date[:4], date[8:]
    return date in title or bool(day and year in title and re.search(rf"(?<!\d)0?{int(day)}(?!\d)", title))


def _titled(title: str, named: int | None) -> str:
    return _referring(clipped(title, LONGEST_TITLE), named)


def _referring(title: str, named: int | None) -> str:
    """Return a title, or a reference to the number that named it before, if there is one and it is shorter."""
    reference = f"(same document as [{named}])"
    return reference if named is not None and len(reference) < len(title) else _line(title)


def overlap(before: Citable | None, after: Chunk) -> int:
    """Return how many characters at the start of a chunk stand at the end of its neighbour before it as well."""
    if not isinstance(before, Chunk) or (before.document, before.position + 1) != (after.document, after.position):
        return 0
    if before.end is not None and after.start is not None:
        shared = before.end - after.start
        return shared if 0 < shared < len(after.text) and before.text.endswith(after.text[:shared]) else 0
    most = min(len(before.text), len(after.text) - 1, _LONGEST_OVERLAP)
    return next((n for n in range(most, _SHORTEST_OVERLAP, -1) if before.text.endswith(after.text[:n])), 0)


def same_names(
    classes: Iterable[Sequence[str]], *, known: Iterable[str], read: Iterable[str]
) -> tuple[tuple[str, ...], ...]:
    """Return names of one entity each: one that known texts have, then those that only the texts read have.

    `classes` are all names of an entity each. One that is named alike in both is left out.
    """
    memory, passages = NamesIn(known), NamesIn(read)
    found = []
    for names in classes:
        told = [name for name in names if name in memory]
        others = [name for name in names if name not in told and name in passages]
        if told and others:
            found.append((told[0], *others[:MOST_NAMES]))
    return tuple(found)


def _memory(memory: PromptMemory, lines: Sequence[str]) -> str:
    more = [f"(and {memory.more} more points that are not shown)"] if memory.more else []
    said = [f"- {_line(statement)}" for statement in memory.statements]
    same = [f"- One and the same: {' = '.join(map(_line, names))}" for names in memory.same]
    return "\n".join([*lines, *more, *said, *same]) or "(empty)"


def _numbers(uids: Iterable[str], numbers: Mapping[str, int]) -> str:
    """Return the numbers of these uids, those that have one, as markers in order."""
    found = sorted({numbers[uid] for uid in uids if uid in numbers})
    return " " * bool(found) + "".join(f"[{number}]" for number in found)


def unmarked(text: str) -> str:
    """Return a text in which nothing looks like a citation marker."""
    return _NUMBERED.sub(r"‹\1›", text)


def _relation(relation: Relation) -> str:
    keywords = f" ({_line(', '.join(relation.keywords))})" if relation.keywords else ""
    ends = f"{_line(relation.source_name)} — {_line(relation.target_name)}"
    told = f": {_short(relation.description)}" if relation.description else ""
    return f"- {ends}{unmarked(keywords + told)}"


def _short(description: str) -> str:
    """Return the first whole words of a description, up to about so many tokens."""
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
