"""What a question has read, and which passages of it the answer is drawn from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import Scope, chunks_around_points, chunks_of_entities, find_chunks, nearest_supports
from hgmem.models.embedding import Vectors
from hgmem.retrieval.context_packing import in_order, tokens_of, within
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services
from hgmem.systems.hgmem.findings import Lineages, in_turn
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.showing import on_show
from hgmem.values.evidence import Evidence, Retrieved
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import MemoryPoint, Step

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
