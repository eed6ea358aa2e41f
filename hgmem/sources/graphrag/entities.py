"""Convert foreign entities and relations: names, types, descriptions and supporting chunks."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hgmem.sources.graphrag.property_values import text, words
from hgmem.text.identity import key
from hgmem.text.segmentation import collapse, sound
from hgmem.values.foreign_graph import ForeignEntity, ForeignRelation, Notes, Shape
from hgmem.values.inputs import GivenEntity, GivenRelation

DESCRIPTION = "description"
_SAME = (
    "entity was merged with another of the same name",
    "entities were merged with others of the same name",
)
_NO_END = ("relation of a skipped entity was skipped", "relations of skipped entities were skipped")
_LOOP = ("relation of an entity with itself was skipped", "relations of an entity with itself were skipped")


def entities_of(
    foreign: Iterable[ForeignEntity], chunks: Mapping[str, str], shape: Shape, *, notes: Notes
) -> dict[str, GivenEntity]:
    """Return entities by element id.

    `chunks` holds the ids of imported chunks by element id.
    """
    found: dict[str, GivenEntity] = {}
    for entity in foreign:
        name = _name(entity.properties.get(shape.name_property))
        if not key(name):
            notes[_no_name(shape)] += 1
            continue
        found[entity.id] = GivenEntity(
            name=name,
            type=", ".join(sorted(label for label in map(sound, entity.labels) if _is_type(label, shape))),
            description="\n".join(_description_lines(entity.properties, name, shape)),
            chunks=tuple(chunks[id_] for id_ in entity.chunks if id_ in chunks),
        )
    notes[_SAME] += len(found) - len({key(entity.name) for entity in found.values()})
    return found


def relations_of(
    foreign: Iterable[ForeignRelation], entities: Mapping[str, GivenEntity], *, notes: Notes
) -> tuple[GivenRelation, ...]:
    """Return relations between entities (by element id).

    A relation is supported by the chunks that mention both of its ends.
    """
    mentioned = {id_: frozenset(entity.chunks) for id_, entity in entities.items()}
    found: list[GivenRelation] = []
    for relation in sorted(foreign, key=lambda each: each.id):  # the order must not depend on paging
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


def name_properties(foreign: Iterable[ForeignEntity]) -> Counter[str]:
    """Return how many entities have a usable name in each property."""
    return Counter(
        name
        for entity in foreign
        for name, value in entity.properties.items()
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
