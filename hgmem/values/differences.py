"""How two memories differ: the points that only one has, those that became others, other evidence, and both answers."""

from collections.abc import Iterable
from dataclasses import dataclass

from hgmem.errors import UsageError
from hgmem.values.records import MemoryPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPoint:
    """A point of a compared memory. Points with equal keys are the same: they say the same of the same entities.

    `behind` are the keys of the points that it was revised or merged from, directly or not.
    """

    key: str
    point: MemoryPoint
    behind: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPair:
    """A point of the first memory, and the one of the second that is the same, or that it became or was made from."""

    before: ComparedPoint
    after: ComparedPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChunk:
    """A chunk that a memory's steps retrieved or its points rest on, with the beginning of its text."""

    uid: str
    document: str
    title: str
    position: int
    beginning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMemory:
    """A compared memory at the end of `step`, with the question that it then had and its latest answer until then."""

    memory: str
    step: int
    system: str
    model: str
    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """A memory as it is compared: its active points, each statement once, and the chunks that it rests on."""

    memory: ComparedMemory
    points: tuple[ComparedPoint, ...] = ()
    evidence: tuple[EvidenceChunk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDiff:
    """The way from one memory to another, `before` and `after`.

    Their points are `kept`, `lost` or `gained`. A lost point that a gained one was made from, or that was made from
    it, is `revised` instead, with each such point once.
    """

    before: ComparedMemory
    after: ComparedMemory
    kept: tuple[PointPair, ...] = ()
    gained: tuple[ComparedPoint, ...] = ()
    lost: tuple[ComparedPoint, ...] = ()
    revised: tuple[PointPair, ...] = ()
    evidence_kept: tuple[EvidenceChunk, ...] = ()
    evidence_gained: tuple[EvidenceChunk, ...] = ()
    evidence_lost: tuple[EvidenceChunk, ...] = ()

    @property
    def supported_otherwise(self) -> tuple[PointPair, ...]:
        """The kept points that rest on other chunks now."""
        return tuple(pair for pair in self.kept if {*pair.before.point.chunks} != {*pair.after.point.chunks})

    @property
    def is_empty(self) -> bool:
        """Whether points, evidence and answers are the same."""
        parts = (self.gained, self.lost, self.revised, self.evidence_gained, self.evidence_lost)
        return not any((*parts, self.supported_otherwise)) and self.before.answer == self.after.answer

    def then(self, following: "MemoryDiff") -> "MemoryDiff":
        """Return the difference between the first memory of this and the second of the one that follows.

        Raises `UsageError` if it does not begin with the memory that this ends with.
        """
        if following.before != self.after:
            raise UsageError(
                f"the differences do not follow one another: the first ends with {self.after.memory!r} at step "
                f"{self.after.step}, the second begins with {following.before.memory!r} at step {following.before.step}"
            )
        return difference(self._first(), following._second())

    def _first(self) -> MemoryState:
        points = (*self.lost, *(pair.before for pair in (*self.kept, *self.revised)))
        evidence = (*self.evidence_kept, *self.evidence_lost)
        return MemoryState(memory=self.before, points=points, evidence=evidence)

    def _second(self) -> MemoryState:
        points = (*self.gained, *(pair.after for pair in (*self.kept, *self.revised)))
        evidence = (*self.evidence_kept, *self.evidence_gained)
        return MemoryState(memory=self.after, points=points, evidence=evidence)


def difference(before: MemoryState, after: MemoryState) -> MemoryDiff:
    """Return how two memories differ, in order of the points' birth and of the chunks' documents."""
    old, new = _by_key(before.points), _by_key(after.points)
    gone = {key: one for key, one in old.items() if key not in new}
    come = {key: one for key, one in new.items() if key not in old}
    pairs = [(key, one.key) for one in come.values() for key in one.behind & gone.keys()]
    pairs += [(one.key, key) for one in gone.values() for key in one.behind & come.keys()]
    places = {key: at for at, key in enumerate((*old, *new))}
    ordered = sorted(set(pairs), key=lambda pair: (places[pair[0]], places[pair[1]]))
    chunks, others = set(before.evidence), set(after.evidence)
    return MemoryDiff(
        before=before.memory,
        after=after.memory,
        kept=tuple(PointPair(before=one, after=new[key]) for key, one in old.items() if key in new),
        gained=_without(come, (key for _, key in pairs)),
        lost=_without(gone, (key for key, _ in pairs)),
        revised=tuple(PointPair(before=gone[key], after=come[other]) for key, other in ordered),
        evidence_kept=_in_order(chunks & others),
        evidence_gained=_in_order(others - chunks),
        evidence_lost=_in_order(chunks - others),
    )


def _by_key(points: Iterable[ComparedPoint]) -> dict[str, ComparedPoint]:
    """Return the points by key in order of birth: of those that say the same, the first."""
    found: dict[str, ComparedPoint] = {}
    for one in sorted(points, key=lambda each: (each.point.born, len(each.point.uid), each.point.uid)):
        found.setdefault(one.key, one)
    return found


def _without(points: dict[str, ComparedPoint], keys: Iterable[str]) -> tuple[ComparedPoint, ...]:
    left_out = set(keys)
    return tuple(one for key, one in points.items() if key not in left_out)


def _in_order(chunks: Iterable[EvidenceChunk]) -> tuple[EvidenceChunk, ...]:
    return tuple(sorted(chunks, key=lambda each: (each.title, each.document, each.position, each.uid)))
