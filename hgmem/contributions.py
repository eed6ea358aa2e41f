"""What chunks and ready-made graphs contribute, and the fields that it gives: pure, and the same in any order of work.

Fields of an entity or a relation depend on its contributions alone, taken in order: what is given, then chunks by
uid. So a second indexer, a repeat and a delete all end in the same graph. Where a model condensed the descriptions,
its text is one more input, for as long as they are those that it stands for.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from hgmem.extract import ExtractedRelation, Extraction
from hgmem.identity import key, text_hash
from hgmem.text import collapse

MOST_WEIGHT = 1e300  # a sum of finite weights stays finite
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityContribution:
    """How one source names and describes an entity; `chunks` are the uids that it rests on."""

    name: str
    type: str = ""
    description: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationContribution:
    """What one source says of a relation."""

    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: float = 1.0
    chunks: tuple[str, ...] = ()


Contribution: TypeAlias = EntityContribution | RelationContribution
C = TypeVar("C", EntityContribution, RelationContribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The one text for many descriptions; `condensed` is the JSON that it comes from, `cut` that some are left out."""

    text: str = ""
    condensed: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFields:
    """An entity's name, type and description, as its contributions give them."""

    name: str
    type: str
    description: Description


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFields:
    """A relation's description, keywords and weight, as its contributions give them."""

    description: Description
    keywords: tuple[str, ...]
    weight: float


def entity_fields(
    contributions: Sequence[EntityContribution], *, limit: int, condensed: str | None = None
) -> EntityFields:
    """Return the most frequent name and type (ties by alphabet) and the description of at most `limit` characters."""
    return EntityFields(
        name=_most_frequent(contribution.name for contribution in contributions),
        type=_most_frequent(contribution.type for contribution in contributions),
        description=describe(contributions, limit=limit, condensed=condensed),
    )


def relation_fields(
    contributions: Sequence[RelationContribution], *, limit: int, condensed: str | None = None
) -> RelationFields:
    """Return the description of at most `limit` characters, every keyword once, and the sum of the weights."""
    keywords = (keyword for contribution in contributions for keyword in contribution.keywords)
    return RelationFields(
        description=describe(contributions, limit=limit, condensed=condensed),
        keywords=tuple(dict.fromkeys(keywords)),
        weight=min(sum(contribution.weight for contribution in contributions), MOST_WEIGHT),
    )


def describe(contributions: Iterable[Contribution], *, limit: int, condensed: str | None) -> Description:
    """Return the joined descriptions where they fit, else what was condensed from just these, else the first ones."""
    lines = described(contributions)
    whole = "\n".join(lines)
    if len(whole) < limit or (kept := join(lines, limit=limit)) == whole:
        return Description(text=whole)
    stored = json.loads(condensed) if condensed else {}
    if stored.get("of") == text_hash(whole) and len(stored["text"]) <= limit:
        return Description(text=stored["text"], condensed=condensed)
    return Description(text=kept, cut=True)


def condensed_from(lines: Sequence[str], text: str) -> str:
    """Return the JSON of `condensed`: a text, and the hash of the joined descriptions that it stands for."""
    return json.dumps({"text": text, "of": text_hash("\n".join(lines))}, ensure_ascii=False)


def described(contributions: Iterable[Contribution]) -> list[str]:
    """Return the distinct lines of the descriptions, in order."""
    return _lines(contribution.description for contribution in contributions)


def join(descriptions: Iterable[str], *, limit: int) -> str:
    """Return the distinct descriptions, a line each, as many whole ones as `limit` characters hold."""
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
    """Return what a chunk says of each entity, by key; the end of a relation is an entity too."""
    found: dict[str, list[EntityContribution]] = {}
    for entity in extraction.entities:
        said = EntityContribution(name=collapse(entity.name), type=entity.type, description=entity.description)
        found.setdefault(key(entity.name), []).append(said)
    for relation in extraction.relations:
        for name in (relation.source, relation.target):
            if key(name) not in found:
                found[key(name)] = [EntityContribution(name=collapse(name), description=relation.description)]
    found.pop("", None)
    return found


def relations_of(extraction: Extraction) -> dict[tuple[str, str], list[RelationContribution]]:
    """Return what a chunk says of each relation, by its two keys in order; self-loops are dropped."""
    found: dict[tuple[str, str], list[RelationContribution]] = {}
    for relation in extraction.relations:
        ends = _ends(relation)
        if ends:
            said = RelationContribution(
                description=relation.description, keywords=relation.keywords, weight=relation.weight
            )
            found.setdefault(ends, []).append(said)
    return found


def new_in(more: Extraction, found: Extraction) -> Extraction:
    """Return those entities and relations of `more` that `found` lacks."""
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
    """Return two keys in order, or None for a self-loop or an end without a key."""
    if not one or not other or one == other:
        return None
    return (one, other) if one < other else (other, one)


def chunks_of(contributions: Iterable[Contribution]) -> tuple[str, ...]:
    """Return the chunks (uids) that contributions rest on, each once, sorted."""
    return tuple(sorted({chunk for contribution in contributions for chunk in contribution.chunks}))


def dump(contributions: Iterable[Contribution]) -> str:
    """Return given contributions as the JSON of `given`."""
    return _encode([{name: getattr(one, name) for name in one.__slots__} for one in contributions])


def load_entities(given: str | None) -> list[EntityContribution]:
    """Return the given contributions."""
    return [EntityContribution(**fields) for fields in _records(given)]


def load_relations(given: str | None) -> list[RelationContribution]:
    """Return the given contributions."""
    return [RelationContribution(**fields) for fields in _records(given)]


def counting(contributions: Iterable[C], *, living: AbstractSet[str]) -> list[C]:
    """Return the contributions that count, with their living chunks: those whose chunks are all gone do not."""
    kept = []
    for one in contributions:
        chunks = tuple(chunk for chunk in one.chunks if chunk in living)
        if chunks or not one.chunks:
            kept.append(one if chunks == one.chunks else replace(one, chunks=chunks))
    return kept


def _records(given: str | None) -> list[dict[str, Any]]:
    return [
        {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        for record in (json.loads(given) if given else [])
    ]


def _most_frequent(values: Iterable[str]) -> str:
    said = list(filter(None, values))
    if len(said) < 2:
        return said[0] if said else ""
    counts = Counter(said)
    return min(counts, key=lambda value: (-counts[value], value))


def entity_text(name: str, description: str) -> str:
    """Return the text that an entity's vector stands for."""
    return f"{name}: {description}"


def relation_text(ends: Sequence[str], description: str, keywords: Sequence[str]) -> str:
    """Return the text that a relation's vector stands for; `ends` are keys."""
    extra = f" ({', '.join(keywords)})" if keywords else ""
    return f"{', '.join(ends)}: {description}{extra}"


def own_relation_text(names: Sequence[str], description: str) -> str:
    """Return the text that the vector of a memory's own relation stands for; its ends may have no keys."""
    return f"{', '.join(names)}: {description}"
