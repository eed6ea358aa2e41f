"""The points of a memory: those that are active, those that were superseded, and what each was made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hgmem.values.records import MemoryPoint, Step, StepChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A point that was inserted, or a revision, with the chunks (uids) that it brought."""

    point: str
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoints:
    """Every point of a memory by uid, in order of birth, and the points (uids) that each was made from."""

    by_uid: Mapping[str, MemoryPoint] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, points: Iterable[MemoryPoint], steps: Iterable[Step]) -> "MemoryPoints":
        """Return stored points, in order of birth, with the lineages that the operations of steps tell."""
        parts = {operation.point: operation.parts for step in steps for operation in step.operations if operation.parts}
        return cls(by_uid={point.uid: point for point in points}, parts=parts)

    @property
    def active(self) -> tuple[MemoryPoint, ...]:
        """The points that no later one has superseded, in order of birth."""
        return tuple(point for point in self.by_uid.values() if point.died is None)

    def at(self, step: int) -> tuple[MemoryPoint, ...]:
        """Return the points that are active at the end of `step`, in order of birth."""
        return tuple(point for point in self.by_uid.values() if point.alive(step))

    def after(self, changes: StepChanges, *, step: int) -> "MemoryPoints":
        """Return the points as a step's changes leave them."""
        born = {birth.point.uid: birth.point for birth in changes.births}
        parts = {birth.point.uid: (*birth.revises, *birth.merges) for birth in changes.births}
        by_uid = {**self.by_uid, **born}
        died = {uid: replace(by_uid[uid], died=step) for uid in changes.died}
        return MemoryPoints(by_uid=by_uid | died, parts={**self.parts, **parts})

    def findings(self, points: Sequence[MemoryPoint]) -> list[tuple[Finding, ...]]:
        """Return the findings that each point stands for, in order of birth, those that rest on chunks.

        A point without known parts is a finding itself.
        """
        place = {uid: at for at, uid in enumerate(self.by_uid)}
        found = []
        for point in points:
            before = sorted(self._behind(point) & place.keys(), key=lambda uid: place[uid])
            each = map(self._finding, (*(self.by_uid[uid] for uid in before), point))
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
        parts = (self.by_uid[uid] for uid in self.parts.get(point.uid, ()) if uid in self.by_uid)
        inherited = {chunk for part in parts for chunk in part.chunks}
        return Finding(point=point.uid, chunks=tuple(chunk for chunk in point.chunks if chunk not in inherited))
