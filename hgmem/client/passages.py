"""The passages of a memory: the ranked chunks that its answer is drawn from."""

import json
from abc import ABC, abstractmethod
from dataclasses import replace

from hgmem.client.async_variants import async_variant
from hgmem.graph.documents import document_states
from hgmem.graph.memory import corpus_of
from hgmem.memory.stored_memories import load_memory
from hgmem.services import Services, ready_corpus
from hgmem.systems.recorded_passages import latest_steps
from hgmem.systems.registry import memory_passages
from hgmem.values.arguments import Argument, check, count
from hgmem.values.records import Memory, Passage

LIMIT = Argument(count, "must be an integer of at least 1, or omitted")


class Passages(ABC):
    """Client methods for the passages of a memory."""

    @abstractmethod
    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        """Return the services for work on a corpus."""

    def passages(
        self,
        uid: str,
        *,
        step: int | None = None,
        limit: int | None = None,
        owner: str | None = None,
    ) -> tuple[Passage, ...]:
        """Return the chunks that support memory `uid` at the end of `step` (default: the last), the best first.

        These are the chunks that its recipe draws an answer from: at most `limit`, by default as many as the recipe
        says. If a recipe that answers from `read` chunks has read fewer than `limit`, further chunks of the same
        sub-queries follow, without score and step. With an `owner`, another's memory is not found.
        """
        check({"limit": limit}, {"limit": LIMIT})
        services = self._services(None, owner)
        corpus, memory = corpus_of(services.database, uid=uid, owner=services.owner)
        return passages(replace(services, corpus=corpus), memory, step=step, limit=limit)

    apassages = async_variant(passages)


def passages(services: Services, uid: str, *, step: int | None, limit: int | None) -> tuple[Passage, ...]:
    """Return the chunks that support a memory of the corpus at the end of a step, the best first."""
    ready_corpus(services)
    timeout = services.settings.claim_timeout
    memory = load_memory(services.database, uid, step=step, claim_timeout=timeout, owner=services.owner)
    if not memory.steps:
        return ()
    chunks = memory_passages(services, memory, limit=limit)
    scores: dict[str, float] = {}
    for one in (one for step in latest_steps(memory) for one in step.retrieved):
        for hit in one.chunks:
            scores[hit.uid] = max(hit.score, scores.get(hit.uid, -1.0))
    documents = document_states(
        services.database, corpus=services.corpus, uids=sorted({chunk.document for chunk in chunks})
    )
    found = []
    for rank, chunk in enumerate(chunks, start=1):
        document = documents.get(chunk.document)
        found.append(
            Passage(
                chunk=chunk,
                rank=rank,
                score=scores.get(chunk.uid),
                step=_first(memory, chunk.uid),
                points=tuple(point for point in memory.points if chunk.uid in point.chunks),
                source=(document.source or "") if document else "",
                metadata=json.loads(document.metadata or "{}") if document else {},
            )
        )
    return tuple(found)


def _first(memory: Memory, chunk: str) -> int | None:
    """Return the first step that retrieved a chunk or created a point that it supports."""
    retrieved = [
        step.number for step in memory.steps for one in step.retrieved for hit in one.chunks if hit.uid == chunk
    ]
    return min([*retrieved, *(point.born for point in memory.points if chunk in point.chunks)], default=None)
