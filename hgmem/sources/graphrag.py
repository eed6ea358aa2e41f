"""Convert a graph of the neo4j-graphrag package into a pre-built graph.

The package's `LexicalGraphBuilder`, `LLMEntityRelationExtractor` and `Neo4jWriter` define the format
(https://github.com/neo4j/neo4j-graphrag-python, checked against versions 1.0, 1.3 and 1.22). Invalid data is skipped
and counted, because the graph may have been edited since.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from hgmem.text.identity import key
from hgmem.text.language import counted
from hgmem.text.segmentation import TITLE_LENGTH, collapse, sound
from hgmem.values.foreign_graph import Element, ForeignGraph, Notes, Shape
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation, Scalar

DESCRIPTION = "description"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What is left out or changed: a note for one, and for several.
_SAME = (
    "entity was merged with another of the same name",
    "entities were merged with others of the same name",
)
_NO_END = ("relation of a skipped entity was skipped", "relations of skipped entities were skipped")
_LOOP = ("relation of an entity with itself was skipped", "relations of an entity with itself were skipped")
_NO_TEXT = ("chunk without text was skipped", "chunks without text were skipped")
_SEVERAL = (
    "chunk of several documents was assigned to the first",
    "chunks of several documents were assigned to the first",
)
_MADE = ("document was created for chunks without one", "documents were created for chunks without one")


def assembled(found: ForeignGraph, shape: Shape) -> tuple[Given, tuple[str, ...]]:
    """Return the graph as a pre-built one, and a note for each thing that was left out or changed."""
    notes: Notes = Counter()
    documents, chunks = _lexical(found, notes)
    entities = _entities(
        found.entities, {element_id: chunk.id for element_id, chunk in chunks.items()}, shape, notes=notes
    )
    relations = _relations(found.relations, entities, notes=notes)
    given = Given(
        documents=documents, chunks=tuple(chunks.values()), entities=tuple(entities.values()), relations=relations
    )
    return given, tuple(counted(number, singular, plural) for (singular, plural), number in notes.items() if number)


def text(value: object) -> str:
    """Return the value in one line.

    Lists are joined with commas, times are ISO 8601, and bytes are empty.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(filter(None, map(text, value)))
    if isinstance(value, bytes | bytearray):
        return ""
    return collapse(sound(str(value)))


def scalar(value: object) -> Scalar:
    """Return the value as metadata: numbers and booleans unchanged, everything else as text."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return text(value)


def words(name: str) -> str:
    """Return a property name or relationship type as words.

    `WORKS_FOR` and `worksFor` become `works for`.
    """
    spaced = collapse(_CAMEL.sub(" ", sound(name)).replace("_", " "))
    return spaced.lower() if name.isupper() or spaced != name else spaced


def _entities(
    foreign: Iterable[Element], chunks: Mapping[str, str], shape: Shape, *, notes: Notes
) -> dict[str, GivenEntity]:
    """Return entities by element id.

    `chunks` holds the ids of imported chunks by element id.
    """
    found: dict[str, GivenEntity] = {}
    for entity in foreign:
        name = _name(entity["properties"].get(shape.name_property))
        if not key(name):
            notes[_no_name(shape)] += 1
            continue
        found[entity["id"]] = GivenEntity(
            name=name,
            type=", ".join(sorted(label for label in map(sound, entity["labels"]) if _is_type(label, shape))),
            description="\n".join(_description_lines(entity["properties"], name, shape)),
            chunks=tuple(chunks[id_] for id_ in entity["chunks"] if id_ in chunks),
        )
    notes[_SAME] += len(found) - len({key(entity.name) for entity in found.values()})
    return found


def _relations(
    foreign: Iterable[Element], entities: Mapping[str, GivenEntity], *, notes: Notes
) -> tuple[GivenRelation, ...]:
    """Return relations between entities (by element id).

    A relation is supported by the chunks that mention both of its ends.
    """
    mentioned = {id_: frozenset(entity.chunks) for id_, entity in entities.items()}
    found: list[GivenRelation] = []
    for relation in sorted(foreign, key=itemgetter("id")):  # the order must not depend on paging
        source, target = entities.get(relation["source"]), entities.get(relation["target"])
        if source is None or target is None:
            notes[_NO_END] += 1
        elif key(source.name) == key(target.name):
            notes[_LOOP] += 1
        else:
            phrase = words(relation["type"])
            found.append(
                GivenRelation(
                    source=source.name,
                    target=target.name,
                    description=_sentence(f"{source.name} {phrase} {target.name}", relation["properties"]),
                    keywords=(phrase,),
                    chunks=tuple(id_ for id_ in source.chunks if id_ in mentioned[relation["target"]]),
                )
            )
    return tuple(found)


def name_properties(foreign: Iterable[Element]) -> Counter[str]:
    """Return how many entities have a usable name in each property."""
    return Counter(
        name
        for entity in foreign
        for name, value in entity["properties"].items()
        if not name.startswith("__") and key(_name(value))
    )


def _no_name(shape: Shape) -> tuple[str, str]:
    phrase = f"without a name in {shape.name_property!r}"
    return f"entity {phrase} was skipped", f"entities {phrase} were skipped"


def _name(value: object) -> str:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    return collapse(sound(str(value))) if usable else ""


def _is_type(label: str, shape: Shape) -> bool:
    return label != shape.entity_label and not label.startswith("__")  # such as __KGBuilder__


def _description_lines(properties: Mapping[str, Any], name: str, shape: Shape) -> list[str]:
    """Return the lines of an entity's description: its own, then one for each other property."""
    own = properties.get(DESCRIPTION)
    lines = [collapse(sound(own))] if isinstance(own, str) else []
    lines += _details(properties, skipped={shape.name_property, shape.id_property}, unless=name)
    return [line for line in lines if line]


def _sentence(phrase: str, properties: Mapping[str, Any]) -> str:
    """Return a relation's description in one line that differs from those of parallel relations."""
    own = properties.get(DESCRIPTION)
    described = f"{phrase}: {collapse(sound(own))}" if isinstance(own, str) and own.strip() else phrase
    details = _details(properties, skipped=set())
    return f"{described} ({'; '.join(details)})" if details else described


def _details(properties: Mapping[str, Any], *, skipped: set[str], unless: str = "") -> list[str]:
    """Return `name: value` for each non-empty property, sorted by name."""
    return [
        f"{words(name)}: {phrase}"
        for name, value in sorted(properties.items())
        if name not in skipped
        and not name.startswith("__")
        and (phrase := text(value)) not in ("", unless)
        and not (name == DESCRIPTION and isinstance(value, str))
    ]


def _lexical(found: ForeignGraph, notes: Notes) -> tuple[tuple[Document, ...], dict[str, GivenChunk]]:
    """Return documents, and chunks by element id, grouped by document and in its order."""
    said = [chunk for chunk in found.chunks if isinstance(chunk["text"], str)]
    usable = {chunk["id"]: chunk for chunk in said if sound(chunk["text"]).strip()}
    notes[_NO_TEXT] += len(found.chunks) - len(usable)
    names = _names({foreign["id"]: foreign["properties"].get("path") for foreign in found.documents})
    names |= _names({chunk["id"]: chunk["own"] for chunk in usable.values()})
    made = {foreign["id"]: _document(foreign, names[foreign["id"]]) for foreign in found.documents}
    members: dict[str, list[Element]] = {id_: [] for id_ in made}
    loose: dict[str, Element] = {}
    for chunk in usable.values():
        homes = [id_ for id_ in chunk["documents"] if id_ in made]
        notes[_SEVERAL] += len(homes) > 1
        if homes:
            members[homes[0]].append(chunk)
        else:
            loose[chunk["id"]] = chunk
    for chain in _chains(loose):
        first = _in_order(chain)[0]
        id_ = first["id"]
        made[id_] = Document(id=f"chunks-{names[id_]}", text="", title=_first_line(first["text"]))
        members[id_] = chain
        notes[_MADE] += 1
    chunks = {
        chunk["id"]: GivenChunk(id=names[chunk["id"]], document=made[home].id, text=sound(chunk["text"]))
        for home, belonging in members.items()
        for chunk in _in_order(belonging)
    }
    return tuple(made.values()), chunks


def _names(own: Mapping[str, Any]) -> dict[str, str]:
    """Return an id for each element id: its own name if that is unique, else the element id."""
    texts = {id_: sound(name).strip() if isinstance(name, str) else "" for id_, name in own.items()}
    seen = Counter(texts.values())
    return {id_: name if name and seen[name] == 1 else id_ for id_, name in texts.items()}


def _document(foreign: Element, id_: str) -> Document:
    given = foreign["properties"]
    path, title = (sound(value) if isinstance(value := given.get(name), str) else "" for name in ("path", "title"))
    metadata = {
        sound(name): scalar(value)
        for name, value in given.items()
        if name != "path" and not name.startswith("__") and not (name == "id" and value == given.get("path"))
    }
    title = collapse(title) or PurePath(path).name or id_
    return Document(id=id_, text="", title=title[:TITLE_LENGTH], source=path, metadata=metadata)


def _chains(chunks: Mapping[str, Element]) -> Iterator[list[Element]]:
    """Yield groups of chunks that NEXT_CHUNK connects, in any direction."""
    beside: dict[str, set[str]] = defaultdict(set)
    for chunk in chunks.values():
        for other in chunk["following"]:
            if other in chunks:
                beside[chunk["id"]].add(other)
                beside[other].add(chunk["id"])
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


def _in_order(chunks: Sequence[Element]) -> list[Element]:
    """Return a document's chunks by their numbers, or by NEXT_CHUNK if numbers are missing or repeated."""
    by_id = sorted(chunks, key=lambda chunk: (len(chunk["id"]), chunk["id"]))  # ids are ascending
    ranked = sorted(by_id, key=lambda chunk: _number(chunk["position"]))
    if len({_number(chunk["position"]) for chunk in chunks}) == len(chunks):
        return ranked
    known = {chunk["id"]: chunk for chunk in ranked}
    led_to = {other for chunk in ranked for other in chunk["following"] if other != chunk["id"]}
    ordered: dict[str, Element] = {}
    for start in sorted(ranked, key=lambda chunk: chunk["id"] in led_to):  # heads of chains first (a stable sort)
        waiting = [start["id"]]
        while waiting:
            here = waiting.pop()
            if here in known and here not in ordered:
                ordered[here] = known[here]
                waiting += reversed(known[here]["following"])
    return list(ordered.values())


def _number(value: object) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    return float(value) if usable else math.inf  # type: ignore[arg-type]


def _first_line(text: str) -> str:
    return next(collapse(line) for line in sound(text).splitlines() if line.strip())[:TITLE_LENGTH]
