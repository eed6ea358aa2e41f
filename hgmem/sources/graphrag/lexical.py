"""Convert foreign documents and chunks, with each chunk's document and position."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hgmem.sources.graphrag.property_values import scalar
from hgmem.text.segmentation import collapse, sound
from hgmem.values.foreign_graph import ForeignChunk, ForeignDocument, Found, Notes
from hgmem.values.inputs import Document, GivenChunk

_TITLE_LENGTH = 120
_NO_TEXT = ("chunk without text was skipped", "chunks without text were skipped")
_SEVERAL = (
    "chunk of several documents was assigned to the first",
    ("chunks of several documents were assigned to the first"),
)
_MADE = ("document was created for chunks without one", "documents were created for chunks without one")


def lexical(found: Found, notes: Notes) -> tuple[tuple[Document, ...], dict[str, GivenChunk]]:
    """Return documents, and chunks by element id, grouped by document and in its order."""
    usable = {chunk.id: chunk for chunk in found.chunks if isinstance(chunk.text, str) and sound(chunk.text).strip()}
    notes[_NO_TEXT] += len(found.chunks) - len(usable)
    names = _names({foreign.id: foreign.properties.get("path") for foreign in found.documents})
    names |= _names({chunk.id: chunk.own for chunk in usable.values()})
    made = {foreign.id: _document(foreign, names[foreign.id]) for foreign in found.documents}
    members: dict[str, list[ForeignChunk]] = {id_: [] for id_ in made}
    loose: dict[str, ForeignChunk] = {}
    for chunk in usable.values():
        homes = [id_ for id_ in chunk.documents if id_ in made]
        notes[_SEVERAL] += len(homes) > 1
        if homes:
            members[homes[0]].append(chunk)
        else:
            loose[chunk.id] = chunk
    for chain in _chains(loose):
        first = _in_order(chain)[0]
        made[first.id] = Document(id=f"chunks-{names[first.id]}", text="", title=_first_line(first.text))
        members[first.id] = chain
        notes[_MADE] += 1
    chunks = {
        chunk.id: GivenChunk(id=names[chunk.id], document=made[home].id, text=sound(chunk.text))
        for home, belonging in members.items()
        for chunk in _in_order(belonging)
    }
    return tuple(made.values()), chunks


def _names(own: Mapping[str, Any]) -> dict[str, str]:
    """Return an id for each element id: its own name if that is unique, else the element id."""
    texts = {id_: sound(name).strip() if isinstance(name, str) else "" for id_, name in own.items()}
    seen = Counter(texts.values())
    return {id_: name if name and seen[name] == 1 else id_ for id_, name in texts.items()}


def _document(foreign: ForeignDocument, id_: str) -> Document:
    given = foreign.properties
    path, title = (sound(value) if isinstance(value := given.get(name), str) else "" for name in ("path", "title"))
    metadata = {
        sound(name): scalar(value)
        for name, value in given.items()
        if name != "path" and not name.startswith("__") and not (name == "id" and value == given.get("path"))
    }
    title = collapse(title) or PurePath(path).name or id_
    return Document(id=id_, text="", title=title[:_TITLE_LENGTH], source=path, metadata=metadata)


def _chains(chunks: Mapping[str, ForeignChunk]) -> Iterator[list[ForeignChunk]]:
    """Yield groups of chunks that NEXT_CHUNK connects, in any direction."""
    beside: dict[str, set[str]] = defaultdict(set)
    for chunk in chunks.values():
        for other in chunk.following:
            if other in chunks:
                beside[chunk.id].add(other)
                beside[other].add(chunk.id)
    left = dict.fromkeys(chunks)
    while left:
        start = next(iter(left))
        del left[start]
        reached, waiting = {start}, [start]
        while waiting:
            for other in beside[waiting.pop()] - reached:
                reached.add(other)
                waiting.append(other)
                del left[other]
        yield [chunks[id_] for id_ in sorted(reached)]


def _in_order(chunks: Sequence[ForeignChunk]) -> list[ForeignChunk]:
    """Return a document's chunks by their numbers, or by NEXT_CHUNK if numbers are missing or repeated."""
    ranked = sorted(chunks, key=lambda chunk: (_number(chunk.position), len(chunk.id), chunk.id))  # ids are ascending
    if len({_number(chunk.position) for chunk in chunks}) == len(chunks):
        return ranked
    known = {chunk.id: chunk for chunk in ranked}
    led_to = {other for chunk in ranked for other in chunk.following if other != chunk.id}
    ordered: dict[str, ForeignChunk] = {}
    for start in sorted(ranked, key=lambda chunk: chunk.id in led_to):  # heads of chains first (a stable sort)
        waiting = [start.id]
        while waiting:
            here = waiting.pop()
            if here in known and here not in ordered:
                ordered[here] = known[here]
                waiting += reversed(known[here].following)
    return list(ordered.values())


def _number(value: object) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    return float(value) if usable else math.inf  # type: ignore[arg-type]


def _first_line(text: str) -> str:
    return next(collapse(line) for line in sound(text).splitlines() if line.strip())[:_TITLE_LENGTH]
