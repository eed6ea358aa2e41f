"""Memory: how a reply inserts, revises and merges points (paper, section 3.2 and equation 8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from hgmem.identity import key
from hgmem.model import Chunk, Entity, Evidence, MemoryPoint, Operation, OperationKind
from hgmem.text import collapse


class Insertion(BaseModel):
    """A new point: the names that it ties, and the evidence chunks (indices, from 0) that support it."""

    model_config = ConfigDict(frozen=True)
    entities: tuple[str, ...]
    description: str
    chunks: tuple[int, ...] = ()


class Revision(BaseModel):
    """A point said better; `entities` and `chunks` are added to what the point has."""

    model_config = ConfigDict(frozen=True)
    point: int
    description: str
    entities: tuple[str, ...] = ()
    chunks: tuple[int, ...] = ()


class EvolveReply(BaseModel):
    """What the evidence adds to memory."""

    model_config = ConfigDict(frozen=True)
    update: tuple[Revision, ...] = ()
    insert: tuple[Insertion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolve:
    """Ask what the evidence of a step adds to memory; indices refer to `points` and `evidence.chunks`."""

    question: str
    subqueries: tuple[str, ...]
    points: tuple[MemoryPoint, ...]
    evidence: Evidence
    name = "evolve"
    reply_type = EvolveReply


class Joining(BaseModel):
    """Two or more points said as one."""

    model_config = ConfigDict(frozen=True)
    points: tuple[int, ...]
    description: str


class MergeReply(BaseModel):
    """Which points belong together."""

    model_config = ConfigDict(frozen=True)
    merge: tuple[Joining, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Ask which points to merge; indices refer to `points`."""

    question: str
    points: tuple[MemoryPoint, ...]
    name = "merge"
    reply_type = MergeReply


# Applying replies ---------------------------------------------------------------------------------------------

Resolve: TypeAlias = Mapping[str, Entity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """A point that a step gave birth to, and the points (uids) that it revises or merges."""

    point: MemoryPoint
    revises: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()


class Draft:
    """Memory within one step: the living points, and what happened to them so far. Nothing is written here.

    `entities` of every method map the key of a name to its entity; names that it lacks are left out.
    """

    def __init__(self, *, memory: str, number: int, points: Sequence[MemoryPoint]) -> None:
        self.memory = memory
        self.number = number
        self.points = tuple(points)
        self.births: list[Birth] = []
        self.died: list[str] = []
        self.operations: list[Operation] = []
        self.provisionals: dict[str, Entity] = {}

    def evolve(self, reply: EvolveReply, *, chunks: Sequence[Chunk], entities: Resolve) -> None:
        """Apply updates, then inserts; what a reply gets wrong is dropped, with its reason."""
        rendered = self.points
        updated: set[int] = set()
        for revision in reply.update:
            reason = self._against_revision(revision, rendered, updated)
            if reason:
                self._drop(f"update of point {revision.point}: {reason}")
                continue
            if self._revise(rendered[revision.point], revision, chunks=chunks, entities=entities):
                updated.add(revision.point)
        for insertion in reply.insert:
            self._insert(insertion, chunks=chunks, entities=entities)

    def merge(self, reply: MergeReply) -> None:
        """Apply merges: V_k = V_i ∪ V_j (paper, equation 8), and the parts die."""
        rendered = self.points
        merged: set[int] = set()
        for joining in reply.merge:
            indices = tuple(dict.fromkeys(index for index in joining.points if 0 <= index < len(rendered)))
            for index in sorted(set(joining.points) - set(indices)):
                self._drop(f"merge: there is no point {index}")
            free = [index for index in indices if index not in merged]
            for index in sorted(set(indices) - set(free)):
                self._drop(f"merge: point {index} is in another merge already")
            if len(free) < 2 or not joining.description.strip():
                self._drop(f"merge of points {list(joining.points)}: {_unmergeable(free)}")
                continue
            merged.update(free)
            self._merge([rendered[index] for index in free], collapse(joining.description))

    def _against_revision(self, revision: Revision, rendered: Sequence[MemoryPoint], updated: set[int]) -> str:
        if not 0 <= revision.point < len(rendered):
            return "there is no such point"
        if revision.point in updated:
            return "it was updated already"
        if not revision.description.strip():
            return "the text is empty"
        return ""

    def _revise(self, old: MemoryPoint, revision: Revision, *, chunks: Sequence[Chunk], entities: Resolve) -> bool:
        description = collapse(revision.description)
        involved = _tied(old.entities, self._described(self._named(revision.entities, entities), description))
        supports = tuple(dict.fromkeys((*old.chunks, *self._supports(revision.chunks, chunks))))
        if (description, len(involved), len(supports)) == (old.description, len(old.entities), len(old.chunks)):
            self._drop(f"update of point {revision.point}: nothing changed")
            return False
        new = self._born(description, entities=involved, chunks=supports, kind="revise", parts=(old.uid,))
        self.births.append(Birth(point=new, revises=(old.uid,)))
        self._replace([old], new)
        return True

    def _insert(self, insertion: Insertion, *, chunks: Sequence[Chunk], entities: Resolve) -> None:
        description = collapse(insertion.description)
        named = self._named(insertion.entities, entities)
        if not description or not named:
            self._drop(f"insert: {'the text is empty' if not description else 'it names no entity'}")
            return
        if any(point.description == description and _uids(point.entities) == _uids(named) for point in self.points):
            self._drop("insert: a living point says the same")
            return
        involved = _tied(self._described(named, description))
        supports = self._supports(insertion.chunks, chunks) or _mentioning(involved, chunks)
        new = self._born(description, entities=involved, chunks=supports, kind="insert", parts=())
        self.births.append(Birth(point=new))
        self.points = (*self.points, new)

    def _merge(self, parts: Sequence[MemoryPoint], description: str) -> None:
        involved = _tied(*(part.entities for part in parts))
        supports = tuple(dict.fromkeys(chunk for part in parts for chunk in part.chunks))
        uids = tuple(part.uid for part in parts)
        new = self._born(description, entities=involved, chunks=supports, kind="merge", parts=uids)
        self.births.append(Birth(point=new, merges=uids))
        self._replace(parts, new)

    def _born(
        self,
        description: str,
        *,
        entities: tuple[Entity, ...],
        chunks: tuple[str, ...],
        kind: OperationKind,
        parts: tuple[str, ...],
    ) -> MemoryPoint:
        uid = f"{self.memory}-{self.number}-{len(self.operations) + 1}"
        self.operations.append(Operation(kind=kind, point=uid, parts=parts))
        return MemoryPoint(uid=uid, description=description, entities=entities, chunks=chunks, born=self.number)

    def _replace(self, parts: Sequence[MemoryPoint], new: MemoryPoint) -> None:
        """Let the parts die and the new point stand at the end, as the newest."""
        gone = {part.uid for part in parts}
        self.died.extend(part.uid for part in parts)
        self.points = (*(point for point in self.points if point.uid not in gone), new)

    def _named(self, names: Sequence[str], entities: Resolve) -> tuple[Entity, ...]:
        for name in names:
            if not key(name):
                self._drop("a name is empty")
        return tuple(entities[key(name)] for name in names if key(name) in entities)

    def _described(self, entities: Iterable[Entity], description: str) -> list[Entity]:
        """Return the entities; one that is new to the database takes the text of the point that names it first."""
        found = []
        for entity in entities:
            if entity.provisional and not entity.description:
                described = replace(entity, description=description)
                entity = self.provisionals.setdefault(entity.uid, described)
            found.append(entity)
        return found

    def _supports(self, indices: Sequence[int], chunks: Sequence[Chunk]) -> tuple[str, ...]:
        known = tuple(dict.fromkeys(index for index in indices if 0 <= index < len(chunks)))
        for index in sorted(set(indices) - set(known)):
            self._drop(f"evidence chunk {index}: there is no such chunk")
        return tuple(chunks[index].uid for index in known)

    def _drop(self, reason: str) -> None:
        self.operations.append(Operation(kind="drop", reason=reason))


def names_of(reply: EvolveReply) -> tuple[str, ...]:
    """Return every name that a reply ties, each once."""
    said = [name for revision in reply.update for name in revision.entities]
    said += [name for insertion in reply.insert for name in insertion.entities]
    return tuple(dict.fromkeys(collapse(name) for name in said if key(name)))


def _mentioning(entities: Sequence[Entity], chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Return the evidence chunks that mention most of the entities: the support of a point that names none."""
    wanted = _uids(entities)
    shared = {chunk.uid: len(wanted & _uids(chunk.entities)) for chunk in chunks}
    most = max(shared.values(), default=0)
    return tuple(uid for uid, count in shared.items() if count == most and most > 0)


def _unmergeable(free: Sequence[int]) -> str:
    return "the text is empty" if len(free) >= 2 else "fewer than two points are left"


def _tied(*groups: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the union of vertex sets, each entity once, in order of first mention."""
    found: dict[str, Entity] = {}
    for entity in (entity for group in groups for entity in group):
        found.setdefault(entity.uid, entity)
    return tuple(found.values())


def _uids(entities: Iterable[Entity]) -> set[str]:
    return {entity.uid for entity in entities}
