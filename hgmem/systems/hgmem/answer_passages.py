"""What a question has read, and which passages of it the answer is drawn from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hgmem.graph.retrieval import Scope, chunks_around_points, chunks_of_entities, find_chunks
from hgmem.models.embedding import Vectors
from hgmem.retrieval.context_packing import in_order, within
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.values.evidence import Evidence, Retrieved
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import MemoryPoint, Step


@dataclass(slots=True, kw_only=True)
class Reading:
    """The chunks that a question's steps retrieved.

    `scores` are the best by uid, `rankings` the uids of each sub-query, the best first, and `chunks` the texts at hand.
    """

    services: Services
    scope: Scope
    scores: dict[str, float] = field(default_factory=dict)
    rankings: list[list[str]] = field(default_factory=list)
    chunks: dict[str, Chunk] = field(default_factory=dict)

    def remember(self, steps: Iterable[Step]) -> None:
        """Take in what stored steps retrieved."""
        for step in steps:
            self._score(step.retrieved)

    def add(self, evidence: Evidence) -> None:
        """Take in what a step retrieved."""
        self._score(evidence.retrieved)
        self.chunks |= {chunk.uid: chunk for chunk in evidence.chunks}

    def passages(self, points: Sequence[MemoryPoint], *, query: Vectors, config: HGMemConfig) -> list[Chunk]:
        """Return the chunks that the answer is drawn from, in order of document and position."""
        return in_order(within(self.ranked(points, query=query, config=config), tokens=config.answer_tokens))

    def ranked(self, points: Sequence[MemoryPoint], *, query: Vectors, config: HGMemConfig) -> list[Chunk]:
        """Return the chunks that an answer may be drawn from, the best first."""
        return self._fetched(self._chosen(points, query, config)[: config.answer_chunks])

    def _chosen(self, points: Sequence[MemoryPoint], query: Vectors, config: HGMemConfig) -> list[str]:
        """Return the uids, the best first."""
        match config.answer_from if points else "read":
            case "supports":
                return _supports(points, self.scores, most=config.point_chunks)
            case "memory":
                return self._of_memory(points, query, config)
            case "around":
                return self._around(points, config)
            case _:
                return self._of_all(points)

    def _of_all(self, points: Sequence[MemoryPoint]) -> list[str]:
        """Return what was read by its ranks among the sub-queries' and, where it supports points, among those.

        Ranks are fused, not scores: those of different sub-queries, and of words, can't be compared. What was asked
        first, the question itself, counts twice: what is asked later comes from what was made of it.
        """
        read = fuse(self.rankings)
        place = {uid: at for at, uid in enumerate(read)}
        supports = {uid for point in points for uid in point.chunks}
        ordered = sorted(supports, key=lambda uid: (place.get(uid, len(read)), uid))
        return fuse([ordered, *self.rankings[:1], *self.rankings])

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


def _supports(points: Sequence[MemoryPoint], scores: dict[str, float], *, most: int) -> list[str]:
    """Return the chunks that support points: the best of every point, the newest point's first, then the second."""
    newest = sorted(points, key=lambda point: -point.born)
    ranked = [sorted(point.chunks, key=lambda uid: (-scores.get(uid, 0.0), uid))[:most] for point in newest]
    rounds = (one[at] for at in range(most) for one in ranked if at < len(one))
    return list(dict.fromkeys(rounds))
