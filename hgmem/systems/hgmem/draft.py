"""Memory within one step: apply a model's replies to its points, without I/O."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from hgmem.systems.hgmem.replies import Additions, Insertion, MergeReply, Revision
from hgmem.systems.hgmem.tasks.memory_changes import MergeRule, UpdateRule
from hgmem.text.identity import key
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import Source
from hgmem.values.graph_elements import Chunk, Entity, Relation
from hgmem.values.records import Birth, MemoryPoint, Operation, OperationKind, StepChanges

MOST_CHARACTERS = 4_000  # of a point's text
LONGEST_NAME = 300  # characters

Resolve: TypeAlias = Mapping[str, Entity]
Numbered: TypeAlias = Sequence[Chunk | Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for updates and merges (paper, section 3.2 and equation 8).

    An update unites the entities that it names with the point's own, keeps the point's own, or replaces them. A
    merged point replaces its parts, or is added beside them.
    """

    update: UpdateRule = "unite"
    merge: MergeRule = "replace"


class Draft:
    """Memory within one step: its active points and the changes so far.

    Replies name points by their index in `shown`, the points of the prompt. A point that was revised or merged
    since then stands for its successor.
    """

    def __init__(self, *, memory: str, number: int, points: Sequence[MemoryPoint], rules: Rules | None = None) -> None:
        self.memory = memory
        self.number = number
        self.points = tuple(points)
        self.rules = rules or Rules()
        self.births: list[Birth] = []
        self.died: list[str] = []
        self.operations: list[Operation] = []
        self.provisionals: dict[str, Entity] = {}
        self.relations: dict[str, Relation] = {}
        self._became: dict[str, str] = {}

    def evolve(
        self, reply: Additions, *, shown: Sequence[MemoryPoint], chunks: Numbered, entities: Resolve
    ) -> tuple[MemoryPoint | None, ...]:
        """Apply updates, then inserts. Return the point of each insertion, or None if it was dropped.

        `chunks` are what the reply may name by number. `entities` maps the key of a name to its entity. Names without
        an entry are ignored.
        """
        updated: set[int] = set()
        for revision in reply.update:
            reason = self._against_revision(revision, shown, updated)
            if reason:
                self._drop(f"update of point {revision.point}: {reason}")
                continue
            if self._revise(shown[revision.point], revision, chunks=chunks, entities=entities):
                updated.add(revision.point)
        return tuple(self._insert(insertion, chunks=chunks, entities=entities) for insertion in reply.insert)

    def merge(self, reply: MergeReply, *, shown: Sequence[MemoryPoint | None]) -> None:
        """Apply merges: V_k = V_i ∪ V_j (paper, equation 8). Parts are superseded unless merges add."""
        merged: set[int] = set()
        for joining in reply.merge:
            if self.rules.merge == "off":
                self._drop(f"merge of points {list(joining.points)}: merging is off")
                continue
            parts = self._parts(joining.points, shown, merged)
            if len(parts) < 2 or not joining.description.strip():
                self._drop(f"merge of points {list(joining.points)}: {_unmergeable(parts)}")
                continue
            merged.update(parts)
            self._merge(list(parts.values()), self._statement(joining.description))

    def living(self, point: MemoryPoint | None) -> MemoryPoint | None:
        """Return a point's active version: itself, its successor, or None."""
        if point is None:
            return None
        uid = point.uid
        while uid in self._became:
            uid = self._became[uid]
        return next((one for one in self.points if one.uid == uid), None)

    def changes(self) -> StepChanges:
        """Return the changes so far, ready to be written."""
        return StepChanges(
            births=tuple(self.births),
            died=tuple(self.died),
            entities=tuple(self.provisionals.values()),
            relations=tuple(self.relations.values()),
        )

    def redescribe(self, entity: Entity) -> None:
        """Replace a new entity by this one, also in the points that involve it."""
        self.provisionals[entity.uid] = entity
        self.births = [replace(birth, point=_with(birth.point, entity)) for birth in self.births]
        self.points = tuple(_with(point, entity) for point in self.points)

    def _parts(
        self, indices: Sequence[int], shown: Sequence[MemoryPoint | None], merged: Set[int]
    ) -> dict[int, MemoryPoint]:
        """Return the active points with these indices that are in no other merge."""
        parts: dict[int, MemoryPoint] = {}
        for index in dict.fromkeys(indices):
            point = self.living(shown[index]) if 0 <= index < len(shown) else None
            if point is None:
                self._drop(f"merge: point {index} does not exist")
            elif index in merged:
                self._drop(f"merge: point {index} is already in another merge")
            else:
                parts[index] = point
        return parts

    def _against_revision(self, revision: Revision, shown: Sequence[MemoryPoint], updated: set[int]) -> str:
        if self.rules.update == "off":
            return "updates are off"
        if not 0 <= revision.point < len(shown):
            return "the point does not exist"
        if revision.point in updated:
            return "the point was already updated"
        if not revision.description.strip():
            return "the text is empty"
        return ""

    def _revise(self, old: MemoryPoint, revision: Revision, *, chunks: Numbered, entities: Resolve) -> bool:
        description = self._statement(revision.description)
        involved = self._involved(old, revision.entities, description=description, entities=entities)
        supports = tuple(dict.fromkeys((*old.chunks, *self._supports(revision.chunks, chunks))))
        if (description, _uids(involved), supports) == (old.description, _uids(old.entities), old.chunks):
            self._drop(f"update of point {revision.point}: nothing changed")
            return False
        new = self._born(description, entities=involved, chunks=supports, kind="revise", parts=(old.uid,))
        self.births.append(Birth(point=new, revises=(old.uid,)))
        self._supersede([old], new)
        self.points = tuple(new if point.uid == old.uid else point for point in self.points)  # it keeps its place
        return True

    def _involved(
        self, old: MemoryPoint, names: Sequence[str], *, description: str, entities: Resolve
    ) -> tuple[Entity, ...]:
        if self.rules.update == "keep":
            return old.entities
        named = self._described(self._named(names, entities), description)
        if self.rules.update == "replace" and named:
            return _united(named)
        return _united(old.entities, named)

    def _insert(self, insertion: Insertion, *, chunks: Numbered, entities: Resolve) -> MemoryPoint | None:
        description = self._statement(insertion.description)
        named = self._named(insertion.entities, entities)
        if not description or not named:
            self._drop(f"insert: {'the text is empty' if not description else 'no entity named'}")
            return None
        if self._duplicate(description, named):
            self._drop("insert: an active point has the same text")
            return None
        involved = _united(self._described(named, description))
        supports = self._supports(insertion.chunks, chunks) or _mentioning(involved, chunks)
        new = self._born(description, entities=involved, chunks=supports, kind="insert", parts=())
        self.births.append(Birth(point=new))
        self.points = (*self.points, new)
        return new

    def _merge(self, parts: Sequence[MemoryPoint], description: str) -> None:
        involved = _united(*(part.entities for part in parts))
        supports = tuple(dict.fromkeys(chunk for part in parts for chunk in part.chunks))
        uids = tuple(part.uid for part in parts)
        if self.rules.merge == "add" and self._duplicate(description, involved):
            self._drop("merge: an active point has the same text")
            return
        new = self._born(description, entities=involved, chunks=supports, kind="merge", parts=uids)
        self.births.append(Birth(point=new, merges=uids))
        if self.rules.merge == "add":
            self.points = (*self.points, new)
        else:
            self._supersede(parts, new)
            self.points = (*(point for point in self.points if point.uid not in uids), new)

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
        lost = tuple(dict.fromkeys(each for one in self.points if one.uid in parts for each in one.deleted_chunks))
        return MemoryPoint(
            uid=uid,
            description=description,
            entities=entities,
            chunks=chunks,
            born=self.number,
            deleted_chunks=lost,
        )

    def _supersede(self, parts: Sequence[MemoryPoint], new: MemoryPoint) -> None:
        self.died.extend(part.uid for part in parts)
        self._became |= dict.fromkeys((part.uid for part in parts), new.uid)

    def _duplicate(self, description: str, entities: Iterable[Entity]) -> bool:
        wanted = _uids(entities)
        return any(point.description == description and _uids(point.entities) == wanted for point in self.points)

    def _statement(self, text: str) -> str:
        statement = collapse(text)
        if len(statement) <= MOST_CHARACTERS:
            return statement
        self._drop(f"text truncated: {len(statement):,} characters, the limit is {MOST_CHARACTERS:,}")
        return statement[:MOST_CHARACTERS].rsplit(" ", 1)[0]

    def _named(self, names: Sequence[str], entities: Resolve) -> tuple[Entity, ...]:
        for name in names:
            if not key(name):
                self._drop("entity name dropped: it is empty")
            elif len(name) > LONGEST_NAME:
                self._drop(f"entity name dropped: {len(name):,} characters, the limit is {LONGEST_NAME}")
        return tuple(entities[key(name)] for name in names if key(name) in entities)

    def _described(self, entities: Iterable[Entity], description: str) -> list[Entity]:
        """Return the entities. A new one gets the text of the first point that names it."""
        found = []
        for entity in entities:
            if entity.provisional and not entity.description:
                described = replace(entity, description=description)
                entity = self.provisionals.setdefault(entity.uid, described)
            found.append(entity)
        return found

    def _supports(self, indices: Sequence[int], chunks: Numbered) -> tuple[str, ...]:
        known = _existing(indices, chunks)
        for index in sorted(set(indices) - set(known)):
            self._drop(f"evidence chunk {index}: the chunk does not exist")
        return tuple(chunks[index].uid for index in known)

    def _drop(self, reason: str) -> None:
        self.operations.append(Operation(kind="drop", reason=reason))


def names_of(reply: Additions) -> tuple[str, ...]:
    """Return every entity name of a reply, each once."""
    said = [name for revision in reply.update for name in revision.entities]
    said += [name for insertion in reply.insert for name in insertion.entities]
    return tuple(dict.fromkeys(collapse(name) for name in said if key(name) and len(name) <= LONGEST_NAME))


def uncited(reply: Additions, chunks: Numbered) -> bool:
    """Whether an insertion cites no chunk that exists: it then rests on those that mention most of its entities."""
    return any(not _existing(insertion.chunks, chunks) for insertion in reply.insert)


def _existing(indices: Sequence[int], chunks: Numbered) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index for index in indices if 0 <= index < len(chunks)))


def _mentioning(entities: Sequence[Entity], chunks: Numbered) -> tuple[str, ...]:
    """Return the evidence chunks that mention most of the entities, to support a point that cites no chunk."""
    wanted = _uids(entities)
    shared = {chunk.uid: len(wanted & _uids(chunk.entities)) for chunk in chunks if isinstance(chunk, Chunk)}
    most = max(shared.values(), default=0)
    return tuple(uid for uid, count in shared.items() if count == most and most > 0)


def _unmergeable(parts: Mapping[int, MemoryPoint]) -> str:
    return "the text is empty" if len(parts) >= 2 else "fewer than two points are left"


def _united(*groups: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the union of the groups, each entity once, in order of first mention."""
    found: dict[str, Entity] = {}
    for entity in (entity for group in groups for entity in group):
        found.setdefault(entity.uid, entity)
    return tuple(found.values())


def _uids(entities: Iterable[Entity]) -> set[str]:
    return {entity.uid for entity in entities}


def _with(point: MemoryPoint, entity: Entity) -> MemoryPoint:
    if all(one.uid != entity.uid for one in point.entities):
        return point
    entities = tuple(entity if one.uid == entity.uid else one for one in point.entities)
    return replace(point, entities=entities)
