"""Their entities and relations: names, types, descriptions, and the chunks that both rest on."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hgmem.graphrag.shape import ForeignEntity, ForeignRelation, Notes, Shape
from hgmem.graphrag.values import text, words
from hgmem.identity import key
from hgmem.inputs import GivenEntity, GivenRelation
from hgmem.text import collapse, sound

DESCRIPTION = "description"
_SAME = (
    "entity was united with another of the same name",
    "entities were united with others of the same name",
)
_NO_END = ("relation of what was left out was left out too", "relations of what was left out were left out too")
_LOOP = ("relation of an entity with itself was left out", "relations of an entity with itself were left out")


def entities_of(
    theirs: Iterable[ForeignEntity], chunks: Mapping[str, str], shape: Shape, *, notes: Notes
) -> dict[str, GivenEntity]:
    """Return entities by element id; `chunks` are the ids of what is adopted, by element id."""
    found: dict[str, GivenEntity] = {}
    for entity in theirs:
        name = _name(entity.properties.get(shape.name_property))
        if not key(name):
            notes[_no_name(shape)] += 1
            continue
        found[entity.id] = GivenEntity(
            name=name,
            type=", ".join(sorted(label for label in map(sound, entity.labels) if _is_type(label, shape))),
            description="\n".join(_said(entity.properties, name, shape)),
            chunks=tuple(chunks[id_] for id_ in entity.chunks if id_ in chunks),
        )
    notes[_SAME] += len(found) - len({key(entity.name) for entity in found.values()})
    return found


def relations_of(
    theirs: Iterable[ForeignRelation], entities: Mapping[str, GivenEntity], *, notes: Notes
) -> tuple[GivenRelation, ...]:
    """Return relations between entities (by element id); they rest on the chunks that mention both ends."""
    mentioned = {id_: frozenset(entity.chunks) for id_, entity in entities.items()}
    found: list[GivenRelation] = []
    for relation in sorted(theirs, key=lambda each: each.id):  # however they were cut into pages
        source, target = entities.get(relation.source), entities.get(relation.target)
        if source is None or target is None:
            notes[_NO_END] += 1
        elif key(source.name) == key(target.name):
            notes[_LOOP] += 1
        else:
            phrase = words(relation.type)
            found.append(
                GivenRelation(
                    source=source.name,
                    target=target.name,
                    description=_sentence(f"{source.name} {phrase} {target.name}", relation.properties),
                    keywords=(phrase,),
                    chunks=tuple(id_ for id_ in source.chunks if id_ in mentioned[relation.target]),
                )
            )
    return tuple(found)


def name_properties(theirs: Iterable[ForeignEntity]) -> Counter[str]:
    """Return how many entities have a value that could be a name, by property."""
    return Counter(
        name
        for entity in theirs
        for name, value in entity.properties.items()
        if not name.startswith("__") and key(_name(value))
    )


def _no_name(shape: Shape) -> tuple[str, str]:
    said = f"without a name in {shape.name_property!r}"
    return f"entity {said} was left out", f"entities {said} were left out"


def _name(value: object) -> str:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    return collapse(sound(str(value))) if usable else ""


def _is_type(label: str, shape: Shape) -> bool:
    return label != shape.entity_label and not label.startswith("__")  # such as __KGBuilder__


def _said(properties: Mapping[str, Any], name: str, shape: Shape) -> list[str]:
    """Return the lines of an entity's description: its own one, then a line for each other property."""
    own = properties.get(DESCRIPTION)
    lines = [collapse(sound(own))] if isinstance(own, str) else []
    lines += _details(properties, skipped={shape.name_property, shape.id_property}, unless=name)
    return [line for line in lines if line]


def _sentence(said: str, properties: Mapping[str, Any]) -> str:
    """Return in one line, which no other relation of the two shares, what is said of a relation."""
    own = properties.get(DESCRIPTION)
    described = f"{said}: {collapse(sound(own))}" if isinstance(own, str) and own.strip() else said
    details = _details(properties, skipped=set())
    return f"{described} ({'; '.join(details)})" if details else described


def _details(properties: Mapping[str, Any], *, skipped: set[str], unless: str = "") -> list[str]:
    """Return `name: value` for each property that says something, by name."""
    return [
        f"{words(name)}: {said}"
        for name, value in sorted(properties.items())
        if name not in skipped
        and not name.startswith("__")
        and (said := text(value)) not in ("", unless)
        and not (name == DESCRIPTION and isinstance(value, str))
    ]
