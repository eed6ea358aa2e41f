"""How near memory points are to the question, which decides what of a large memory a prompt shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hgmem.graph.memory import point_scores
from hgmem.memory.recording import Recording
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.values.records import MemoryPoint


@dataclass(slots=True, kw_only=True)
class Nearness:
    """Scores of points by uid: cosine to `query` in [-1, 1], each computed once."""

    services: Services
    record: Recording
    query: Vectors
    scores: dict[str, float] = field(default_factory=dict)

    def of(self, points: Sequence[MemoryPoint]) -> list[float]:
        """Return the score of each point, in order, with vectors of stored points read from the database."""
        stored = len(self.record.points)
        if not self.scores and stored:
            scope = self.record.scope
            self.scores = point_scores(
                self.services.database, corpus=scope.corpus, memory=scope.memory, query=self.query, most=stored
            )
        missing = [point for point in points if point.uid not in self.scores]
        if missing:
            made = self.services.embed([point.description for point in missing], kind="document")
            self.scores |= {point.uid: float(one @ self.query) for point, one in zip(missing, made, strict=True)}
        return [self.scores[point.uid] for point in points]
