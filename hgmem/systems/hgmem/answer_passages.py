"""What a question has read, and which passages of it the answer is drawn from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hgmem.graph.memory import memory_points, point_scores
from hgmem.graph.retrieval import Scope, chunks_around_points, chunks_of_entities, find_chunks, nearest_supports
from hgmem.models.embedding import Vectors
from hgmem.retrieval.context_packing import in_order, tokens_of, trimmed, unknown, unsaid, within
from hgmem.retrieval.step_evidence import Scene, fuse, gather
from hgmem.services import Services
from hgmem.systems.answering import latest_steps, scope_of
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.options import loaded
from hgmem.values.evidence import Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory, MemoryPoint, Step


def on_show(
    evidence: Evidence, points: Sequence[MemoryPoint], *, config: HGMemConfig, read: Collection[str]
) -> Evidence:
    """Return the part that a prompt shows beside these points, where chunks `read` (uids) were shown before."""
    if config.only_new:
        return unsaid(trimmed(unknown(evidence, points), tokens=config.evidence_tokens, read=read))
    return trimmed(evidence, tokens=config.evidence_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A point that was inserted, or a revision, with the chunks (uids) that it brought."""

    point: str
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """All points of a memory by uid, superseded ones too, and the points (uids) that each was made from."""

    points: Mapping[str, MemoryPoint] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, points: Iterable[MemoryPoint], steps: Iterable[Step]) -> "Lineages":
        """Return the lineages that the operations of steps tell. `points` are in order of birth."""
        parts = {one.point: one.parts for step in steps for one in step.operations if one.parts}
        return cls(points={point.uid: point for point in points}, parts=parts)

    def findings(self, points: Sequence[MemoryPoint]) -> list[tuple[Finding, ...]]:
        """Return the findings that each point stands for, in order of birth, those that rest on chunks.

        A point without known parts is a finding itself.
        """
        place = {uid: at for at, uid in enumerate(self.points)}
        found = []
        for point in points:
            before = sorted(self._behind(point) & place.keys(), key=lambda uid: place[uid])
            each = map(self._finding, (*(self.points[uid] for uid in before), point))
            found.append(tuple(finding for finding in each if finding.chunks))
        return found

    def _behind(self, point: MemoryPoint) -> set[str]:
        """Return the points that were revised or merged into this one, directly or not."""
        behind: set[str] = set()
        left = list(self.parts.get(point.uid, ()))
        while left:
            uid = left.pop()
            if uid not in behind:
                behind.add(uid)
                left += self.parts.get(uid, ())
        return behind

    def _finding(self, point: MemoryPoint) -> Finding:
        parts = (self.points[uid] for uid in self.parts.get(point.uid, ()) if uid in self.points)
        inherited = {chunk for part in parts for chunk in part.chunks}
        return Finding(point=point.uid, chunks=tuple(chunk for chunk in point.chunks if chunk not in inherited))


def in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the first of every list, then the second of every list, and so on, each once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(one[at] for at in range(longest) for one in lists if at < len(one)))


MOST_POINTS = 200  # of a memory whose findings bring passages: several times as many as an answer has chunks


@dataclass(slots=True, kw_only=True)
class Reading:
    """The chunks that a question's steps retrieved.

    `lineages` tell which findings points stand for. `scores` are the best by uid, `rankings` the uids of each
    sub-query, the best first, and `chunks` the texts at hand. `shown` are the uids of those that prompts showed.
    `of_question` is whether the steps asked the question that is answered.
    """

    services: Services
    scope: Scope
    of_question: bool = True
    lineages: Lineages = field(default_factory=Lineages)
    scores: dict[str, float] = field(default_factory=dict)
    rankings: list[list[str]] = field(default_factory=list)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)

    def remember(self, steps: Sequence[Step], *, points: Sequence[MemoryPoint], config: HGMemConfig) -> None:
        """Take in what stored steps retrieved, and what their prompts showed beside these points."""
        for step in steps:
            self._score(step.retrieved)
        if not config.only_new and not config.unread_tokens:
            self.shown |= self.scores.keys()  # these alone need to know it exactly
            return
        self._fetched(list(self.scores))
        for step in steps:
            found = dict.fromkeys(hit.uid for one in step.retrieved for hit in one.chunks)
            chunks = tuple(self.chunks[uid] for uid in found if uid in self.chunks)
            before = [point for point in points if point.alive(step.number - 1)]
            evidence = Evidence(retrieved=step.retrieved, chunks=chunks)
            told = on_show(evidence, before, config=config, read=self.shown)
            self.shown |= {chunk.uid for chunk in told.chunks}

    def add(self, evidence: Evidence) -> None:
        """Take in what a step retrieved."""
        self._score(evidence.retrieved)
        self.chunks |= {chunk.uid: chunk for chunk in evidence.chunks}

    def passages(self, points: Sequence[MemoryPoint], *, query: Vectors, config: HGMemConfig) -> list[Chunk]:
        """Return the chunks that the answer is drawn from, in order of document and position."""
        return in_order(self.drawn(points, query=query, config=config))

    def drawn(self, points: Sequence[MemoryPoint], *, query: Vectors, config: HGMemConfig) -> list[Chunk]:
        """Return the chunks that the answer is drawn from, the best first."""
        found = self.ranked(points, query=query, config=config)
        if not points or config.answer_from != "read":
            return within(found, tokens=config.answer_tokens)
        supports = {uid for point in points for uid in point.chunks}.union(self._best() if config.read_tokens else ())
        kept = within([chunk for chunk in found if chunk.uid in supports], tokens=config.answer_tokens)
        others = [chunk for chunk in found if chunk.uid not in supports]
        most = min(config.answer_tokens, config.read_tokens)
        chosen = within([*kept, *others], tokens=max(most, tokens_of(*kept)))
        return [*chosen, *self._unread(beside=chosen, config=config)]

    def ranked(self, points: Sequence[MemoryPoint], *, query: Vectors, config: HGMemConfig) -> list[Chunk]:
        """Return the chunks that an answer may be drawn from, the best first."""
        return self._fetched(self._chosen(points, query, config)[: config.answer_chunks])

    def _chosen(self, points: Sequence[MemoryPoint], query: Vectors, config: HGMemConfig) -> list[str]:
        """Return the uids, the best first."""
        match config.answer_from if points else "read":
            case "supports":
                return self._of_findings(points, query, config)
            case "memory":
                return self._of_memory(points, query, config)
            case "around":
                return self._around(points, config)
            case _:
                findings = self._of_findings(points, query, config)
                first = [findings[0], *self._best(), *findings[1:]] if findings else []
                return list(dict.fromkeys([*first, *self._of_all(points)]))

    def _unread(self, *, beside: Sequence[Chunk], config: HGMemConfig) -> list[Chunk]:
        """Return chunks that were found but that no prompt showed, by rank, within their own budget."""
        tokens = min(config.unread_tokens, config.answer_tokens - tokens_of(*beside))
        if tokens < 1 or not self.of_question:
            return []
        held = self.shown.union(chunk.uid for chunk in beside)
        found = self._fetched([uid for uid in fuse(self._weighed()) if uid not in held])
        return within(found[: config.answer_chunks - len(beside)], tokens=tokens, least=0)

    def _weighed(self) -> list[list[str]]:
        """Return what each sub-query found. What was asked first, the question itself, counts twice.

        What is asked later comes from what was made of it.
        """
        return [*self.rankings[:1], *self.rankings]

    def _best(self) -> list[str]:
        """Return the chunk that was found first for the question. Memory may be full of an earlier question's."""
        return self.rankings[0][:1] if self.rankings and self.of_question else []

    def _of_findings(self, points: Sequence[MemoryPoint], query: Vectors, config: HGMemConfig) -> list[str]:
        """Return the chunks of findings: the first of every finding, then the second, the nearest point's first.

        A memory of more than `MOST_POINTS` is reduced to its points nearest to the question.
        """
        # A finding's chunks are ordered by nearness to its text, which they bear out: the question is near to the same
        # few chunks whatever the finding says.
        if not points:
            return []
        chosen = self._nearest(points, query)
        findings = dict(zip((point.uid for point in chosen), self.lineages.findings(chosen), strict=True))
        supports = {one.point: one.chunks for found in findings.values() for one in found}
        found = nearest_supports(
            self.services.database,
            scope=self.scope,
            supports={uid: supports.get(uid, ()) for uid in [*supports, *findings]},
            query=query,
        )
        order = sorted(findings, key=lambda uid: -found[uid][0] if uid in found else 1.0)
        told = dict.fromkeys(one.point for uid in order for one in findings[uid])
        return in_turn([found[uid][1] for uid in told if uid in found])

    def _nearest(self, points: Sequence[MemoryPoint], query: Vectors) -> Sequence[MemoryPoint]:
        """Return the points, of a large memory those nearest to a vector, and those that an index no longer knows."""
        if len(points) <= MOST_POINTS:
            return points
        scores = point_scores(
            self.services.database,
            corpus=self.scope.corpus,
            memory=self.scope.memory,
            query=query,
            most=max(len(points), len(self.lineages.points)),
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

    def _of_memory(self, points: Sequence[MemoryPoint], query: Vectors, config: HGMemConfig) -> list[str]:
        involved = sorted({entity.uid for point in points for entity in point.entities})
        found = chunks_of_entities(
            self.services.database, scope=self.scope, uids=involved, query=query, k=config.answer_chunks
        )
        self.chunks |= {chunk.uid: chunk for chunk in found}
        return [chunk.uid for chunk in found]

    def _around(self, points: Sequence[MemoryPoint], config: HGMemConfig) -> list[str]:
        return chunks_around_points(
            self.services.database,
            scope=self.scope,
            points=[point.uid for point in points],
            read=list(self.scores),
            k=config.point_chunks,
        )

    def _fetched(self, uids: Sequence[str]) -> list[Chunk]:
        missing = [uid for uid in uids if uid not in self.chunks]
        if missing:
            self.chunks |= find_chunks(self.services.database, corpus=self.services.corpus, uids=missing)
        found = [self.chunks[uid] for uid in uids if uid in self.chunks]  # one may be gone by now
        within = self.scope.documents  # an older point may rest on others
        return found if within is None else [chunk for chunk in found if chunk.document in within]

    def _score(self, retrieved: Iterable[Retrieved]) -> None:
        for one in retrieved:
            self.rankings.append([hit.uid for hit in one.chunks])
            for hit in one.chunks:
                self.scores[hit.uid] = max(hit.score, self.scores.get(hit.uid, -1.0))


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
