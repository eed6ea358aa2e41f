"""Extraction: what one chunk says, as entities and relations."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

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


class Extraction(BaseModel):
    """What one chunk contributes; kept as JSON in `Chunk.extraction`."""

    model_config = ConfigDict(frozen=True)
    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Ask for the entities and relations of one chunk's text."""

    text: str
    title: str = ""
    entity_types: tuple[str, ...] = ENTITY_TYPES
    name = "extract"
    reply_type = Extraction
