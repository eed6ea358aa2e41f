"""The findings that memory points stand for: what was inserted, and what revisions brought to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hgmem.values.records import MemoryPoint, Step


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
