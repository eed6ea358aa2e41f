"""The tasks of extraction and summarization: Extract, Glean and Condense."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hgmem.extraction.contributions import join
from hgmem.extraction.extractive import extract
from hgmem.extraction.replies import CondensedText, Extraction
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.prompt_delimiters import quoted
from hgmem.settings import ENTITY_TYPES

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Ask for the entities and relations of one chunk's text."""

    text: str
    title: str = ""
    entity_types: tuple[str, ...] = ENTITY_TYPES
    name = "extract"
    prompt_file = PROMPTS / "extract.md"
    reply_type = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"text": quoted(self.text), "title": quoted(self.title), "entity_types": _listed(self.entity_types)}

    def extractive(self, _: VectorCache) -> Extraction:
        """Extract with rules, without a language model."""
        return extract(self.text, entity_types=self.entity_types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Glean:
    """Ask for entities and relations of one chunk's text that `found` lacks."""

    text: str
    title: str = ""
    entity_types: tuple[str, ...] = ENTITY_TYPES
    found: Extraction = field(default_factory=Extraction)
    name = "glean"
    prompt_file = PROMPTS / "glean.md"
    reply_type = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        entities = [f"{entity.name} ({entity.type})" for entity in self.found.entities]
        relations = [f"{relation.source} – {relation.target}" for relation in self.found.relations]
        return {
            "text": quoted(self.text),
            "title": quoted(self.title),
            "entity_types": _listed(self.entity_types),
            "found": quoted("\n".join([*entities, *relations]) or "nothing"),
        }

    def extractive(self, _: VectorCache) -> Extraction:
        """Return nothing, because rules already found all that they can."""
        return Extraction()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condense:
    """Ask for a summary of the subject's descriptions in at most `limit` characters."""

    subject: str
    descriptions: tuple[str, ...]
    limit: int
    name = "condense"
    prompt_file = PROMPTS / "condense.md"
    reply_type = CondensedText

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "subject": quoted(self.subject),
            "descriptions": quoted("\n".join(f"- {line}" for line in self.descriptions)),
            "limit": str(self.limit),
        }

    def extractive(self, _: VectorCache) -> CondensedText:
        """Return the descriptions joined and truncated, without a language model."""
        return CondensedText(text=join(self.descriptions, limit=self.limit))


def _listed(types: tuple[str, ...]) -> str:
    return quoted(", ".join(types))
