"""Reply types of extraction and summarization."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hgmem.models.reply import Reply, TextReply, named

# Other names that models use for these fields.
_NAME = named("name", "entity", "entity_name", "title")
_TYPE = named("type", "entity_type", "category", "label", "kind")
DESCRIPTION = named(
    "description", "statement", "text", "content", "summary", "desc", "relationship", "relation", "predicate"
)
_SOURCE = named("source", "src", "from", "subject", "head", "source_entity")
_TARGET = named("target", "tgt", "to", "object", "tail", "target_entity")
_KEYWORDS = named("keywords", "keyword", "key_words", "keyphrases", "tags")
_WEIGHT = named("weight", "strength", "score", "importance")
ENTITIES = named("entities", "objects", "entity_names", "names", "vertices", "nodes", "entity")
_RELATIONS = named("relations", "relationships", "relation", "relationship", "edges", "triples")


class ExtractedEntity(BaseModel):
    """An entity as one chunk names it."""

    model_config = ConfigDict(frozen=True)
    name: Annotated[str, _NAME]
    type: Annotated[str, _TYPE] = ""
    description: Annotated[str, DESCRIPTION] = ""


class ExtractedRelation(BaseModel):
    """A relation as one chunk states it, between two names."""

    model_config = ConfigDict(frozen=True)
    source: Annotated[str, _SOURCE]
    target: Annotated[str, _TARGET]
    description: Annotated[str, DESCRIPTION] = ""
    keywords: Annotated[tuple[str, ...], _KEYWORDS] = ()
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False), _WEIGHT] = 1.0


class Extraction(Reply):
    """The contributions of one chunk, stored as JSON in `Chunk.extraction`."""

    entities: Annotated[tuple[ExtractedEntity, ...], ENTITIES] = ()
    relations: Annotated[tuple[ExtractedRelation, ...], _RELATIONS] = ()


class CondensedText(TextReply):
    """A summary of many descriptions."""
