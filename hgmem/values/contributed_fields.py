"""Fields of entities and relations, aggregated from their contributions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """An aggregated description. `condensed` is the JSON of its summary, `cut` tells that it is truncated."""

    text: str = ""
    condensed: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFields:
    """An entity's aggregated name, type and description."""

    name: str
    type: str
    description: Description


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFields:
    """A relation's aggregated description, keywords and weight."""

    description: Description
    keywords: tuple[str, ...]
    weight: float
