"""Contributions of chunks and pre-built graphs, and the fields computed from them.

The fields depend only on the ordered contributions: pre-built ones first, then chunks by uid. Repeated, concurrent and
partly deleted indexing therefore end in the same graph. A model's summary of the descriptions is one more input, used
only while the descriptions are unchanged.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from hgmem.extraction.replies import ExtractedRelation, Extraction
from hgmem.text.identity import key, text_hash
from hgmem.text.segmentation import collapse
from hgmem.values.graph_elements import Description, EntityFields, RelationFields

MOST_WEIGHT = 1e300  # keeps sums of finite weights finite
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContribution:
    """How one source names and describes an entity, with the uids of supporting chunks."""

    name: str
    type: str = ""
    description: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationContribution:
    """How one source describes a relation, with the uids of supporting chunks."""

    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()


Contribution: TypeAlias = EntityContribution | RelationContribution
C = TypeVar("C", EntityContribution, RelationContribution)


def entity_fields(
    contributions: Sequence[EntityContribution], *, limit: int, condensed: str | None = None
) -> EntityFields:
    """Return the most frequent name and type (ties alphabetically), and the description.

    The description has at most `limit` characters.
    """
    return EntityFields(
        name=_most_frequent(contribution.name for contribution in contributions),
        type=_most_frequent(contribution.type for contribution in contributions),
        description=describe(contributions, limit=limit, condensed=condensed),
    )


def relation_fields(
    contributions: Sequence[RelationContribution], *, limit: int, condensed: str | None = None
) -> RelationFields:
    """Return the description (at most `limit` characters), the distinct keywords and the summed weight."""
    keywords = (keyword for contribution in contributions for keyword in contribution.keywords)
    return RelationFields(
        description=describe(contributions, limit=limit, condensed=condensed),
        keywords=tuple(dict.fromkeys(keywords)),
        weight=min(sum(contribution.weight for contribution in contributions), MOST_WEIGHT),
    )


def describe(contributions: Iterable[Contribution], *, limit: int, condensed: str | None) -> Description:
    """Return the joined descriptions if they fit, else their summary, else the first ones."""
    lines = described(contributions)
    whole = "\n".join(lines)
    if len(whole) < limit or (kept := join(lines, limit=limit)) == whole:
        return Description(text=whole)
    stored = json.loads(condensed) if condensed else {}
    if stored.get("of") == text_hash(whole) and len(stored["text"]) <= limit:
        return Description(text=stored["text"], condensed=condensed)
    return Description(text=kept, cut=True)


def condensed_from(lines: Sequence[str], text: str) -> str:
    """Return the JSON of `condensed`: a summary, and the hash of the descriptions it replaces."""
    return json.dumps({"text": text, "of": text_hash("\n".join(lines))}, ensure_ascii=False)


def described(contributions: Iterable[Contribution]) -> list[str]:
    """Return the distinct lines of the descriptions, in order."""
    return _lines(contribution.description for contribution in contributions)


def join(descriptions: Iterable[str], *, limit: int) -> str:
    """Return as many distinct description lines as fit into `limit` characters."""
    kept: list[str] = []
    length = 0
    for line in _lines(descriptions):
        length += len(line) + 1
        if kept and length > limit:
            break
        kept.append(line)
    return "\n".join(kept)[:limit]


def _lines(descriptions: Iterable[str]) -> list[str]:
    return list(
        dict.fromkeys(line for description in descriptions for line in description.splitlines() if line.strip())
    )


def entities_of(extraction: Extraction) -> dict[str, list[EntityContribution]]:
    """Return a chunk's contributions to each entity, by key, including the ends of relations."""
    found: dict[str, list[EntityContribution]] = {}
    for entity in extraction.entities:
        named = EntityContribution(name=collapse(entity.name), type=entity.type, description=entity.description)
        found.setdefault(key(entity.name), []).append(named)
    for relation in extraction.relations:
        for name in (relation.source, relation.target):
            if key(name) not in found:
                found[key(name)] = [EntityContribution(name=collapse(name), description=relation.description)]
    found.pop("", None)
    return found


def relations_of(extraction: Extraction) -> dict[tuple[str, str], list[RelationContribution]]:
    """Return a chunk's contributions to each relation, by its ordered keys, without self-loops."""
    found: dict[tuple[str, str], list[RelationContribution]] = {}
    for relation in extraction.relations:
        ends = _ends(relation)
        if ends:
            named = RelationContribution(
                description=relation.description, keywords=relation.keywords, weight=relation.weight
            )
            found.setdefault(ends, []).append(named)
    return found


def new_in(more: Extraction, found: Extraction) -> Extraction:
    """Return the entities and relations of `more` that `found` lacks."""
    names = {key(entity.name) for entity in found.entities}
    pairs = relations_of(found)
    return Extraction(
        entities=tuple(entity for entity in more.entities if key(entity.name) not in names | {""}),
        relations=tuple(
            relation for relation in more.relations if (ends := _ends(relation)) is not None and ends not in pairs
        ),
    )


def _ends(relation: ExtractedRelation) -> tuple[str, str] | None:
    return ordered(key(relation.source), key(relation.target))


def ordered(one: str, other: str) -> tuple[str, str] | None:
    """Return two keys in order, or None for a self-loop or an empty key."""
    if not one or not other or one == other:
        return None
    return (one, other) if one < other else (other, one)


def chunks_of(contributions: Iterable[Contribution]) -> tuple[str, ...]:
    """Return the sorted uids of the chunks that support the contributions."""
    return tuple(sorted({chunk for contribution in contributions for chunk in contribution.chunks}))


def dump(contributions: Iterable[Contribution]) -> str:
    """Return pre-built contributions as the JSON of `given`."""
    return _encode([{name: getattr(one, name) for name in one.__slots__} for one in contributions])


def load_entities(given: str | None) -> list[EntityContribution]:
    """Parse the JSON of `given`."""
    return [EntityContribution(**fields) for fields in _records(given)]


def load_relations(given: str | None) -> list[RelationContribution]:
    """Parse the JSON of `given`."""
    return [RelationContribution(**fields) for fields in _records(given)]


def still_supported(contributions: Iterable[C], *, existing: AbstractSet[str]) -> list[C]:
    """Return the contributions that still count, with their existing chunks.

    Contributions whose chunks are all deleted do not count.
    """
    kept = []
    for one in contributions:
        chunks = tuple(chunk for chunk in one.chunks if chunk in existing)
        if chunks or not one.chunks:
            kept.append(one if chunks == one.chunks else replace(one, chunks=chunks))
    return kept


def _records(given: str | None) -> list[dict[str, Any]]:
    return [
        {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        for record in (json.loads(given) if given else [])
    ]


def _most_frequent(values: Iterable[str]) -> str:
    named = list(filter(None, values))
    if len(named) < 2:
        return named[0] if named else ""
    counts = Counter(named)
    return min(counts, key=lambda value: (-counts[value], value))


def entity_text(name: str, description: str) -> str:
    """Return the text to embed for an entity."""
    return f"{name}: {description}"


def relation_text(ends: Sequence[str], description: str, keywords: Sequence[str]) -> str:
    """Return the text to embed for a relation between two keys."""
    extra = f" ({', '.join(keywords)})" if keywords else ""
    return f"{', '.join(ends)}: {description}{extra}"


def own_relation_text(names: Sequence[str], description: str) -> str:
    """Return the text to embed for a memory's own relation.

    It uses names, because provisional entities have no keys.
    """
    return f"{', '.join(names)}: {description}"
