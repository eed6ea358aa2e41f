"""Which further entities a sub-query looks at, chosen by a model: a switch of the official code (`llm_selection`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import SelectEntitiesReply
from hgmem.values.graph_elements import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectEntities:
    """Ask which of the candidates a sub-query should look at too. Numbers of the reply refer to `candidates`."""

    subquery: str
    memory: Shown
    candidates: tuple[Entity, ...]
    most: int = 5
    name: ClassVar[str] = "select_entities"
    prompt_file: ClassVar[Path] = PROMPTS / "select_entities.md"
    reply_type: ClassVar[type[SelectEntitiesReply]] = SelectEntitiesReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "subquery": rendering.text(self.subquery),
            "memory": rendering.remembered(self.memory, ()),
            "candidates": rendering.entities(self.candidates, numbered=True),
            "most": str(self.most),
        }

    def extractive(self, _: VectorCache) -> SelectEntitiesReply:
        """Return none: without a language model, nearness alone says which count, and the nearest are kept anyway."""
        return SelectEntitiesReply()
