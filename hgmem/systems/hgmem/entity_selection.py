"""Evidence around entities that a model adds to the nearest ones of each sub-query (official code, `llm_selection`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from hgmem.errors import BadReplyError
from hgmem.models.embedding import Vectors
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import PromptMemory
from hgmem.retrieval.step_evidence import CANDIDATES, RetrievalConfig, Scene, gather
from hgmem.services import Services
from hgmem.systems.hgmem.replies import SelectEntitiesReply
from hgmem.systems.hgmem.tasks import PROMPTS
from hgmem.values.evidence import Evidence, Subquery
from hgmem.values.graph_elements import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectEntities:
    """Ask which of the candidates a sub-query should look at too. Numbers of the reply refer to `candidates`."""

    subquery: str
    memory: PromptMemory
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


MORE = 5  # entities that a model may add to a sub-query's (official code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Where and how a step looks, and the memory that its model sees."""

    services: Services
    memory: PromptMemory
    scene: Scene
    config: RetrievalConfig


def with_chosen_entities(
    subqueries: Sequence[Subquery], vectors: Vectors, *, look: Look
) -> tuple[Evidence, tuple[str, ...]]:
    """Return the evidence of the sub-queries, and notes.

    Of the 20 nearest entities a sub-query keeps the first `config.entities` and those that a model selects of the rest.
    Relations and chunks are then gathered around both.
    """
    database, config = look.services.database, look.config
    wide = replace(
        config,
        entities=max(CANDIDATES, config.entities),
        relations=0,
        chunks=0,
        searched_chunks=0,
        chunk_search="off",
    )
    found, notes = gather(database, subqueries, vectors, scene=look.scene, config=wide)
    chosen, replied = _chosen(found, look)
    scene = replace(look.scene, chosen=chosen)
    settled = [retrieved.subquery for retrieved in found.retrieved]  # global where nothing was around the points
    most = replace(config, entities=config.entities + MORE)
    evidence, _ = gather(database, settled, vectors, scene=scene, config=most)
    return evidence, (*notes, *replied)


def _chosen(found: Evidence, look: Look) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """Return the entities (uids) of each sub-query, the nearest and then those selected, and notes."""
    notes: list[str] = []
    entities = {entity.uid: entity for entity in found.entities}
    chosen = []
    for retrieved in found.retrieved:
        near = [entities[hit.uid] for hit in retrieved.entities]
        kept, rest = near[: look.config.entities], near[look.config.entities :]
        selected, replied = _selected(retrieved.subquery.text, rest, look) if rest else ((), ())
        notes += replied
        chosen.append(tuple(entity.uid for entity in (*kept, *selected)))
    return tuple(chosen), notes


def _selected(subquery: str, candidates: Sequence[Entity], look: Look) -> tuple[tuple[Entity, ...], tuple[str, ...]]:
    """Return the candidates that the model selects, and notes."""
    task = SelectEntities(subquery=subquery, memory=look.memory, candidates=tuple(candidates), most=MORE)
    try:
        reply = look.services.reply(task)
    except BadReplyError as error:
        return (), (f"select_entities: no usable reply ({error})",)
    numbers = list(dict.fromkeys(at for at in reply.selected if 0 <= at < len(candidates)))
    unknown = sorted(set(reply.selected) - set(numbers))
    notes = [f"select_entities: candidate {at} does not exist" for at in unknown]
    if len(numbers) > MORE:
        notes.append(f"select_entities: {len(numbers) - MORE} candidates beyond {MORE} were dropped")
    replied = [f"select_entities: {note}" for note in reply.notes]
    return tuple(candidates[at] for at in numbers[:MORE]), (*replied, *notes)
