"""The chunks behind an answer from a stored memory, as its recipe ranks them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hgmem.graph.memory import memory_points
from hgmem.memory.recording import MemoryPoints
from hgmem.models.extractive import ExtractiveModel
from hgmem.retrieval.step_evidence import Scene, fuse, gather
from hgmem.services import Services
from hgmem.systems.answering import latest_steps, scope_of
from hgmem.systems.hgmem.investigation import RetrievedChunks
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.spec import loaded
from hgmem.values.evidence import Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory, MemoryPoint


def passages(services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None) -> Sequence[Chunk]:
    """Return the chunks that the memory's recipe draws an answer from, the best first.

    If a recipe that answers from `read` chunks has read fewer than `limit`, further chunks of the same sub-queries
    follow.
    """
    config = loaded(HGMemConfig, settings)
    config = config if limit is None else replace(config, answer_chunks=limit)
    retrieved = RetrievedChunks(
        services=services,
        scope=scope_of(services, memory),
        config=config,
        question=(question := memory.steps[-1].question),
        query=services.embed([question], kind="query")[0],
        by_rules=memory.model == ExtractiveModel.name and all(step.question == question for step in memory.steps),
    )
    points = MemoryPoints.of(_all_points(services, memory), memory.steps)
    retrieved.add_steps(latest_steps(memory), points)
    if limit is None and config.answer_from == "read":  # tokens end the list
        return retrieved.drawn(memory.points, points)
    chunks = retrieved.ranked(memory.points, points)
    if limit is not None and len(chunks) < limit and config.answer_from == "read":
        chunks += _further(retrieved, memory, beside=chunks)
    return chunks


def _all_points(services: Services, memory: Memory) -> Sequence[MemoryPoint]:
    """Return the memory's points. Superseded ones are read only if a point was made from any."""
    made = {operation.point for step in memory.steps for operation in step.operations if operation.parts}
    if not any(point.uid in made for point in memory.points):
        return memory.points
    stored = memory_points(services.database, corpus=services.corpus, memory=memory.uid, owner=services.owner)
    return [found.point for found in stored]


def _further(retrieved: RetrievedChunks, memory: Memory, *, beside: Sequence[Chunk]) -> list[Chunk]:
    """Search deeper with the same sub-queries and return the chunks that are still missing, the best first."""
    services, config, wanted = retrieved.services, retrieved.config, retrieved.config.answer_chunks
    queries = list(dict.fromkeys(each.subquery.text for step in latest_steps(memory) for each in step.retrieved))
    deeper = replace(config.retrieval, entities=1, relations=0, chunks=0, searched_chunks=wanted, exclude=False)
    evidence, _ = gather(
        services.database,
        [Subquery(text=text) for text in queries],
        services.embed(queries, kind="query"),
        scene=Scene(scope=retrieved.scope, covered=0, entities=0),
        config=deeper,
    )
    texts = {chunk.uid: chunk for chunk in evidence.chunks}
    chosen = {chunk.uid for chunk in beside}
    order = fuse([hit.uid for hit in found.chunks] for found in evidence.retrieved)
    return [texts[uid] for uid in order if uid not in chosen][: wanted - len(beside)]
