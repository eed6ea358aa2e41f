"""Extraction: what one chunk says, as entities and relations; what was missed of it; many descriptions as one text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hgmem.fences import quoted
from hgmem.reply import Reply, TextReply

ENTITY_TYPES = ("person", "organization", "place", "event", "role", "concept")


class ExtractedEntity(BaseModel):
    """An entity as one chunk names it."""

    model_config = ConfigDict(frozen=True)
    name: str
    type: str = ""
    description: str = ""


class ExtractedRelation(BaseModel):
    """A relation as one chunk states it, between two names."""

    model_config = ConfigDict(frozen=True)
    source: str
    target: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0


class Extraction(Reply):
    """What one chunk contributes; kept as JSON in `Chunk.extraction`."""

    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()


class CondensedText(TextReply):
    """What many descriptions say, as one text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Ask for the entities and relations of one chunk's text."""

    text: str
    title: str = ""
    entity_types: tuple[str, ...] = ENTITY_TYPES
    name = "extract"
    reply_type = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {"text": quoted(self.text), "title": quoted(self.title), "entity_types": _listed(self.entity_types)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Glean:
    """Ask for what `found` misses of one chunk's text."""

    text: str
    title: str = ""
    entity_types: tuple[str, ...] = ENTITY_TYPES
    found: Extraction = field(default_factory=Extraction)
    name = "glean"
    reply_type = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        entities = [f"{entity.name} ({entity.type})" for entity in self.found.entities]
        relations = [f"{relation.source} – {relation.target}" for relation in self.found.relations]
        return {
            "text": quoted(self.text),
            "title": quoted(self.title),
            "entity_types": _listed(self.entity_types),
            "found": quoted("\n".join([*entities, *relations]) or "nothing"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Condense:
    """Ask for one text of at most `limit` characters that says what descriptions of `subject` say."""

    subject: str
    descriptions: tuple[str, ...]
    limit: int
    name = "condense"
    reply_type = CondensedText

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "subject": quoted(self.subject),
            "descriptions": quoted("\n".join(f"- {line}" for line in self.descriptions)),
            "limit": str(self.limit),
        }


def _listed(types: tuple[str, ...]) -> str:
    return quoted(", ".join(types))
