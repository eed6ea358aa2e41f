"""The chunks that a question's steps retrieved, and which of them the answer is drawn from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hgmem.graph.memory import memory_points, point_scores
from hgmem.graph.retrieval import Scope, chunks_around_points, chunks_of_entities, find_chunks, nearest_supports
from hgmem.memory.points import MemoryPoints
from hgmem.models.embedding import Vectors
from hgmem.retrieval.fusion import fuse
from hgmem.retrieval.rendering import tokens_of, visible_evidence, within
from hgmem.retrieval.step_evidence import Scene, gather
from hgmem.services import Services
from hgmem.systems.answering import latest_steps, scope_of
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.options import loaded
from hgmem.values.evidence import Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory, MemoryPoint, Step

MOST_POINTS = 200  # of a memory whose findings bring passages: several times as many as an answer has chunks
POINT_CHUNKS = 5  # that a point brings from those read around it, as many beside it (the official code's value)


def in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the first of every list, then the second of every list, and so on, each once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(uids[at] for at in range(longest) for uids in lists if at < len(uids)))


@dataclass(slots=True, kw_only=True)
class RetrievedChunks:
    """The chunks that a question's steps retrieved. Only the methods that add steps or evidence change it.

    `scores` are the best by uid, `rankings` the uids of each sub-query, the best first, and `texts` the chunks at hand.
    `read_uids` are those of chunks that prompts showed. `of_question` is whether the steps asked the question that is
    answered.
    """

    services: Services
    scope: Scope
    config: HGMemConfig
    of_question: bool = True
    scores: dict[str, float] = field(default_factory=dict)
    rankings: list[list[str]] = field(default_factory=list)
    texts: dict[str, Chunk] = field(default_factory=dict)
    read_uids: set[str] = field(default_factory=set)

    def add_steps(self, steps: Sequence[Step], points: MemoryPoints) -> None:
        """Take in what stored steps retrieved, and what their prompts showed beside the points of then."""
        for step in steps:
            self._add_hits(step.retrieved)
        if not self.config.only_new and not self.config.unread_tokens:
            self.read_uids |= self.scores.keys()  # these alone need to know it exactly
            return
        self.texts |= self._missing(list(self.scores))
        for step in steps:
            found = dict.fromkeys(hit.uid for retrieved in step.retrieved for hit in retrieved.chunks)
            chunks = tuple(self.texts[uid] for uid in found if uid in self.texts)
            self.add_visible(Evidence(retrieved=step.retrieved, chunks=chunks), points.at(step.number - 1))

    def add(self, evidence: Evidence) -> None:
        """Take in what a step retrieved."""
        self._add_hits(evidence.retrieved)
        self.texts |= {chunk.uid: chunk for chunk in evidence.chunks}

    def add_visible(self, evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
        """Return the part of the evidence that a prompt shows beside these points, and count its chunks as read."""
        visible = visible_evidence(
            evidence,
            points,
            tokens=self.config.evidence_tokens,
            only_new=self.config.only_new,
            read_uids=self.read_uids,
        )
        self.read_uids |= {chunk.uid for chunk in visible.chunks}
        return visible

    def drawn(self, points: Sequence[MemoryPoint], memory: MemoryPoints, *, query: Vectors) -> list[Chunk]:
        """Return the chunks that the answer from these points of a memory is drawn from, the best first."""
        config = self.config
        found = self.ranked(points, memory, query=query)
        if not points or config.answer_from != "read":
            return within(found, tokens=config.answer_tokens)
        supports = {uid for point in points for uid in point.chunks}.union(self._best() if config.read_tokens else ())
        kept = within([chunk for chunk in found if chunk.uid in supports], tokens=config.answer_tokens)
        others = [chunk for chunk in found if chunk.uid not in supports]
        most = min(config.answer_tokens, config.read_tokens)
        chosen = within([*kept, *others], tokens=max(most, tokens_of(*kept)))
        return [*chosen, *self._unread(beside=chosen)]

    def ranked(self, points: Sequence[MemoryPoint], memory: MemoryPoints, *, query: Vectors) -> list[Chunk]:
        """Return the chunks that an answer may be drawn from, the best first."""
        match self.config.answer_from if points else "read":
            case "memory":
                return chunks_of_entities(
                    self.services.database,
                    scope=self.scope,
                    uids=sorted({entity.uid for point in points for entity in point.entities}),
                    query=query,
                    k=self.config.answer_chunks,
                )
            case "around":
                order = chunks_around_points(
                    self.services.database,
                    scope=self.scope,
                    points=[point.uid for point in points],
                    read=list(self.scores),
                    k=POINT_CHUNKS,
                )
            case _:
                findings = self._of_findings(points, memory, query)
                first = [findings[0], *self._best(), *findings[1:]] if findings else []
                order = list(dict.fromkeys([*first, *self._of_all(points)]))
        return self._fetched(order[: self.config.answer_chunks])

    def _unread(self, *, beside: Sequence[Chunk]) -> list[Chunk]:
        """Return chunks that were found but that no prompt showed, by rank, within their own budget."""
        tokens = min(self.config.unread_tokens, self.config.answer_tokens - tokens_of(*beside))
        if tokens < 1 or not self.of_question:
            return []
        chosen = self.read_uids.union(chunk.uid for chunk in beside)
        found = self._fetched([uid for uid in fuse(self._weighed()) if uid not in chosen])
        return within(found[: self.config.answer_chunks - len(beside)], tokens=tokens, least=0)

    def _weighed(self) -> list[list[str]]:
        """Return what each sub-query found. What was asked first, the question itself, counts twice.

        What is asked later comes from what was made of it.
        """
        return [*self.rankings[:1], *self.rankings]

    def _best(self) -> list[str]:
        """Return the chunk that was found first for the question. Memory may be full of an earlier question's."""
        return self.rankings[0][:1] if self.rankings and self.of_question else []

    def _of_findings(self, points: Sequence[MemoryPoint], memory: MemoryPoints, query: Vectors) -> list[str]:
        """Return the chunks of findings: the first of every finding, then the second, the nearest point's first.

        A memory of more than `MOST_POINTS` is reduced to its points nearest to the question.
        """
        # A finding's chunks are ordered by nearness to its text, which they bear out: the question is near to the same
        # few chunks whatever the finding says.
        if not points:
            return []
        chosen = self._nearest(points, memory, query)
        findings = dict(zip((point.uid for point in chosen), memory.findings(chosen), strict=True))
        supports = {finding.point: finding.chunks for found in findings.values() for finding in found}
        found = nearest_supports(
            self.services.database,
            scope=self.scope,
            supports={uid: supports.get(uid, ()) for uid in [*supports, *findings]},
            query=query,
        )
        order = sorted(findings, key=lambda uid: -found[uid][0] if uid in found else 1.0)
        stated = dict.fromkeys(finding.point for uid in order for finding in findings[uid])
        return in_turn([found[uid][1] for uid in stated if uid in found])

    def _nearest(self, points: Sequence[MemoryPoint], memory: MemoryPoints, query: Vectors) -> Sequence[MemoryPoint]:
        """Return the points, of a large memory those nearest to a vector, and those that an index no longer knows."""
        if len(points) <= MOST_POINTS:
            return points
        scores = point_scores(
            self.services.database,
            corpus=self.scope.corpus,
            memory=self.scope.memory,
            query=query,
            most=max(len(points), len(memory.by_uid)),
        )
        superseded = [point for point in points if point.uid not in scores]  # since the step that is answered from
        known = sorted((point for point in points if point.uid in scores), key=lambda point: -scores[point.uid])
        return [*known[:MOST_POINTS], *superseded]

    def _of_all(self, points: Sequence[MemoryPoint]) -> list[str]:
        """Return what was read by its ranks among the sub-queries' and, where it supports points, among those.

        Ranks are fused, not scores: those of different sub-queries, and of words, can't be compared.
        """
        read = fuse(self.rankings)
        place = {uid: at for at, uid in enumerate(read)}
        supports = {uid for point in points for uid in point.chunks}
        ordered = sorted(supports, key=lambda uid: (place.get(uid, len(read)), uid))
        return fuse([ordered, *self._weighed()])

    def _fetched(self, uids: Sequence[str]) -> list[Chunk]:
        """Return the chunks of uids, those that are not at hand from the database."""
        texts = {**self.texts, **self._missing(uids)}
        found = [texts[uid] for uid in uids if uid in texts]  # one may be gone by now
        documents = self.scope.documents  # an older point may rest on others
        return found if documents is None else [chunk for chunk in found if chunk.document in documents]

    def _missing(self, uids: Sequence[str]) -> Mapping[str, Chunk]:
        missing = [uid for uid in uids if uid not in self.texts]
        return find_chunks(self.services.database, corpus=self.services.corpus, uids=missing) if missing else {}

    def _add_hits(self, retrieved: Iterable[Retrieved]) -> None:
        for found in retrieved:
            self.rankings.append([hit.uid for hit in found.chunks])
            for hit in found.chunks:
                self.scores[hit.uid] = max(hit.score, self.scores.get(hit.uid, -1.0))


def passages(services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None) -> Sequence[Chunk]:
    """Return the chunks that the memory's recipe draws an answer from, the best first.

    If a recipe that answers from `read` chunks has read fewer than `limit`, further chunks of the same sub-queries
    follow.
    """
    config = loaded(HGMemConfig, settings)
    config = config if limit is None else replace(config, answer_chunks=limit)
    retrieved = RetrievedChunks(services=services, scope=scope_of(services, memory), config=config)
    points = MemoryPoints.of(_all_points(services, memory), memory.steps)
    retrieved.add_steps(latest_steps(memory), points)
    query = services.embed([memory.steps[-1].question], kind="query")[0]
    if limit is None and config.answer_from == "read":  # tokens end the list
        return retrieved.drawn(memory.points, points, query=query)
    chunks = retrieved.ranked(memory.points, points, query=query)
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
