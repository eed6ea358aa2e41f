"""The ranked chunks behind the answer of a stored memory, and further ones of the same sub-queries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hgmem.graph.memory import memory_points
from hgmem.retrieval.step_evidence import Scene, fuse, gather
from hgmem.services import Services
from hgmem.systems.hgmem.answer_passages import Reading
from hgmem.systems.hgmem.findings import Lineages
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.options import loaded
from hgmem.systems.recorded_passages import latest_steps, scope_of
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
    reading = Reading(services=services, scope=scope_of(services, memory))
    points = _all_points(services, memory)
    reading.remember(latest_steps(memory), points=points, config=config)
    reading.lineages = Lineages.of(points, memory.steps)
    query = services.embed([memory.steps[-1].question], kind="query")[0]
    if limit is None and config.answer_from in ("read", "supports"):  # tokens end the list
        return reading.drawn(memory.points, query=query, config=config)
    chunks = reading.ranked(memory.points, query=query, config=config)
    if limit is not None and len(chunks) < limit and config.answer_from == "read":
        chunks += _further(reading, memory, config, beside=chunks)
    return chunks


def _all_points(services: Services, memory: Memory) -> Sequence[MemoryPoint]:
    """Return the memory's points. Superseded ones are read only if a point was made from any."""
    made = {one.point for step in memory.steps for one in step.operations if one.parts}
    if not any(point.uid in made for point in memory.points):
        return memory.points
    stored = memory_points(services.database, corpus=services.corpus, memory=memory.uid, owner=services.owner)
    return [one.point for one in stored]


def _further(reading: Reading, memory: Memory, config: HGMemConfig, *, beside: Sequence[Chunk]) -> list[Chunk]:
    """Search deeper with the same sub-queries and return the chunks that are still missing, the best first."""
    services, wanted = reading.services, config.answer_chunks
    queries = list(dict.fromkeys(one.subquery.text for step in latest_steps(memory) for one in step.retrieved))
    deeper = replace(config.retrieval, entities=1, relations=0, chunks=0, searched_chunks=wanted, exclude=False)
    evidence, _ = gather(
        services.database,
        [Subquery(text=text) for text in queries],
        services.embed(queries, kind="query"),
        scene=Scene(scope=reading.scope, covered=0, entities=0),
        config=deeper,
    )
    texts = {chunk.uid: chunk for chunk in evidence.chunks}
    held = {chunk.uid for chunk in beside}
    order = fuse([hit.uid for hit in one.chunks] for one in evidence.retrieved)
    return [texts[uid] for uid in order if uid not in held][: wanted - len(beside)]
