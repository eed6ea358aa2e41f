"""The passages of a memory: the ranked chunks that its answer is drawn from."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from hgmem.client.async_variants import async_variant
from hgmem.errors import UsageError
from hgmem.graph.documents import document_states
from hgmem.graph.memory import corpus_of
from hgmem.graph.retrieval import Scope
from hgmem.memory.stored_memories import load_memory, load_stored
from hgmem.retrieval.document_filters import choose
from hgmem.retrieval.step_evidence import Scene, fuse, gather
from hgmem.services import Services, ready_corpus
from hgmem.systems.hgmem.answer_passages import Reading
from hgmem.systems.hgmem.recipes import DEFAULT, HGMemConfig, loaded
from hgmem.values.arguments import Argument, check, count
from hgmem.values.evidence import Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory, Passage, Step

LIMIT = Argument(count, "must be an integer of at least 1, or omitted")


class Passages(ABC):
    """Client methods for the passages of a memory."""

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return the services for work on a corpus."""

    def passages(
        self, uid: str, *, step: int | None = None, limit: int | None = None, most: int | None = None
    ) -> tuple[Passage, ...]:
        """Return the chunks that support memory `uid` at the end of `step` (default: the last), the best first.

        These are the chunks that its recipe draws an answer from: at most `limit`, by default as many as the recipe
        says. If a recipe that answers from `read` chunks has read fewer than `limit`, further chunks of the same
        sub-queries follow, without score and step. `most` is the former name of `limit`. Raises `UsageError` if both
        are given.
        """
        check({"limit": limit, "most": most}, {"limit": LIMIT, "most": LIMIT})
        if limit is not None and most is not None:
            raise UsageError("limit= and most= are two names of one argument: give limit= alone")
        services = self._services(None)
        corpus, memory = corpus_of(services.database, uid=uid)
        return passages(replace(services, corpus=corpus), memory, step=step, limit=most if limit is None else limit)

    apassages = async_variant(passages)


def passages(services: Services, uid: str, *, step: int | None, limit: int | None) -> tuple[Passage, ...]:
    """Return the chunks that support a memory of the corpus at the end of a step, the best first."""
    ready_corpus(services)
    config = _config(services, uid, limit)
    memory = load_memory(services.database, uid, step=step, claim_timeout=services.settings.claim_timeout)
    if not memory.steps:
        return ()
    reading = _reading(services, memory)
    query = services.embed([memory.steps[-1].question], kind="query")[0]
    chunks = reading.ranked(memory.points, query=query, config=config)
    if limit is not None and len(chunks) < limit and config.answer_from == "read":
        chunks += _further(reading, memory, config, beside=chunks)
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
                score=reading.scores.get(chunk.uid),
                step=_first(memory, chunk.uid),
                points=tuple(point for point in memory.points if chunk.uid in point.chunks),
                source=(document.source or "") if document else "",
                metadata=json.loads(document.metadata or "{}") if document else {},
            )
        )
    return tuple(found)


def _config(services: Services, uid: str, limit: int | None) -> HGMemConfig:
    """Return the recipe of a memory. The naive system has none: one that reads all its chunks stands in."""
    stored = load_stored(services.database, uid, corpus=services.corpus)
    if stored.system == "hgmem":
        config = loaded(stored.settings)
    else:
        dense = replace(DEFAULT.retrieval, chunk_search="vector")
        config = replace(DEFAULT, answer_chunks=stored.settings["chunks"], retrieval=dense)
    return config if limit is None else replace(config, answer_chunks=limit)


def _reading(services: Services, memory: Memory) -> Reading:
    """Return the reading that holds the evidence of the last question's steps."""
    choice = choose(services.database, memory.steps[-1].filters, corpus=services.corpus)
    scope = Scope(corpus=services.corpus, memory=memory.uid, documents=choice.documents)
    reading = Reading(services=services, scope=scope)
    reading.remember(_steps(memory))
    return reading


def _steps(memory: Memory) -> list[Step]:
    return [one for one in memory.steps if one.question == memory.steps[-1].question]


def _further(reading: Reading, memory: Memory, config: HGMemConfig, *, beside: Sequence[Chunk]) -> list[Chunk]:
    """Search deeper with the same sub-queries and return the chunks that are still missing, the best first."""
    services, wanted = reading.services, config.answer_chunks
    queries = list(dict.fromkeys(one.subquery.text for step in _steps(memory) for one in step.retrieved))
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


def _first(memory: Memory, chunk: str) -> int | None:
    """Return the first step that retrieved a chunk or created a point that it supports."""
    retrieved = [
        step.number for step in memory.steps for one in step.retrieved for hit in one.chunks if hit.uid == chunk
    ]
    return min([*retrieved, *(point.born for point in memory.points if chunk in point.chunks)], default=None)
