"""What memory rests on: the chunks that an answer may be drawn from, ranked, each with what it stands for in memory."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hgmem.arguments import Argument, check, count
from hgmem.filtering import choose
from hgmem.graph.documents import document_states
from hgmem.graph.memory import corpus_of
from hgmem.graph.retrieval import Scope
from hgmem.inputs import Scalar
from hgmem.memories import load_memory, load_stored
from hgmem.model import Chunk, Memory, MemoryPoint, Step, Subquery
from hgmem.retrieve import Scene, fuse, gather
from hgmem.services import Services, ready_corpus
from hgmem.systems.reading import Reading
from hgmem.systems.recipes import DEFAULT, HGMemConfig, loaded
from hgmem.twins import twin

MOST = Argument(count, "is no number of passages: give 1 or more, or leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk that an answer may be drawn from; `rank` counts from 1, the best.

    `score` is the best cosine (in [-1, 1]) of those that the question's steps retrieved it with, None where none of
    them did. `step` is the first one that retrieved it, or that a living point which rests on it is from, None where
    only the entities of memory lead to it. `points` are the living points that it supports, `source` and `metadata`
    those of its document.
    """

    chunk: Chunk
    rank: int
    score: float | None = None
    step: int | None = None
    points: tuple[MemoryPoint, ...] = ()
    source: str = ""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)


class Passages(ABC):
    """Methods of the client for what memory rests on."""

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return what work on a corpus needs."""

    def passages(self, uid: str, *, step: int | None = None, most: int | None = None) -> tuple[Passage, ...]:
        """Return the chunks that memory `uid` rests on at the end of `step` (by default the last), the best first.

        They are those that its recipe draws an answer from: `most` at most, or as many as the recipe says. Where a
        recipe that answers from what was `read` has read fewer than `most`, what the same sub-queries find next
        follows, without score and step.
        """
        services = self._services(None)
        corpus, memory = corpus_of(services.database, uid=uid)
        return passages(replace(services, corpus=corpus), memory, step=step, most=most)

    apassages = twin(passages)


def passages(services: Services, uid: str, *, step: int | None, most: int | None) -> tuple[Passage, ...]:
    """Return the chunks that a memory of the corpus rests on at the end of a step, the best first."""
    check({"most": most}, {"most": MOST})
    ready_corpus(services)
    config = _config(services, uid, most)
    memory = load_memory(services.database, uid, step=step, claim_timeout=services.settings.claim_timeout)
    if not memory.steps:
        return ()
    reading = _reading(services, memory)
    query = services.embed([memory.steps[-1].question], kind="query")[0]
    chunks = reading.ranked(memory.points, query=query, config=config)
    if most is not None and len(chunks) < most and config.answer_from == "read":
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


def _config(services: Services, uid: str, most: int | None) -> HGMemConfig:
    """Return the recipe that a memory was made with; plain retrieval has none, and reads all that it found."""
    stored = load_stored(services.database, uid, corpus=services.corpus)
    if stored.system == "hgmem":
        config = loaded(stored.settings)
    else:
        dense = replace(DEFAULT.retrieval, chunk_search="vector")
        config = replace(DEFAULT, answer_chunks=stored.settings["chunks"], retrieval=dense)
    return config if most is None else replace(config, answer_chunks=most)


def _reading(services: Services, memory: Memory) -> Reading:
    """Return what the steps of the last question read."""
    choice = choose(services.database, memory.steps[-1].filters, corpus=services.corpus)
    scope = Scope(corpus=services.corpus, memory=memory.uid, documents=choice.documents)
    reading = Reading(services=services, scope=scope)
    reading.remember(_steps(memory))
    return reading


def _steps(memory: Memory) -> list[Step]:
    return [one for one in memory.steps if one.question == memory.steps[-1].question]


def _further(reading: Reading, memory: Memory, config: HGMemConfig, *, beside: Sequence[Chunk]) -> list[Chunk]:
    """Return what the same sub-queries find beyond what was read, the best first, so that there are enough."""
    services, wanted = reading.services, config.answer_chunks
    asked = list(dict.fromkeys(one.subquery.text for step in _steps(memory) for one in step.retrieved))
    deeper = replace(config.retrieval, entities=1, relations=0, chunks=0, searched_chunks=wanted, exclude=False)
    evidence, _ = gather(
        services.database,
        [Subquery(text=text) for text in asked],
        services.embed(asked, kind="query"),
        scene=Scene(scope=reading.scope, covered=0, entities=0),
        config=deeper,
    )
    texts = {chunk.uid: chunk for chunk in evidence.chunks}
    held = {chunk.uid for chunk in beside}
    order = fuse([hit.uid for hit in one.chunks] for one in evidence.retrieved)
    return [texts[uid] for uid in order if uid not in held][: wanted - len(beside)]


def _first(memory: Memory, chunk: str) -> int | None:
    """Return the first step that retrieved a chunk, or that a point which rests on it was born at."""
    retrieved = [
        step.number for step in memory.steps for one in step.retrieved for hit in one.chunks if hit.uid == chunk
    ]
    return min([*retrieved, *(point.born for point in memory.points if chunk in point.chunks)], default=None)
