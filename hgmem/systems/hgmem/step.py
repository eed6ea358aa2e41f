"""One step at work: what it asks and finds, what replies make of memory, and what they lead to ask next.

Applying a reply does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeAlias

from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import Additions, Inquiry, Insertion, MergeReply, Retirement, Revision, Verdict, Where
from hgmem.text.identity import key
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import GLOBAL, Evidence, Subquery
from hgmem.values.graph_elements import Chunk, Entity, Relation
from hgmem.values.records import Birth, Judgement, MemoryPoint, Operation, OperationKind, StepChanges

MOST_CHARACTERS = 4_000  # of a point's text
LONGEST_NAME = 300  # characters

Resolve: TypeAlias = Mapping[str, Entity]
Numbered: TypeAlias = Sequence[Chunk]
Known: TypeAlias = Sequence[MemoryPoint | None]  # what the numbers of a reply refer to


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The next step: its sub-queries, empty if the loop ends, and notes on dropped ones.

    With `look`, a first look at the corpus adds to them.
    """

    judgement: Judgement | None = None
    subqueries: tuple[Subquery, ...] = ()
    look: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class StepDraft:
    """A step before it is written: sub-queries, the evidence that its prompts show, and the changes of memory so far.

    Its `points` are those of memory `before` it, in order of birth, and what `operations` made of them. Replies
    name points by their index in `known`, the points of their prompt. A point that was revised or merged since then
    stands for its successor. `last` is whether no step may follow.

    By `config` an update unites the entities that it names with the point's own, keeps the point's own, or replaces
    them; a merged point replaces its parts, or is added beside them (paper, section 3.5; version A, equation 8).
    """

    memory: str
    number: int
    config: HGMemConfig
    before: Sequence[MemoryPoint]
    subqueries: tuple[Subquery, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    asked: Sequence[str] = ()  # before the next step: the question and all sub-queries
    last: bool = False
    operations: list[Operation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)  # of points (uids) in all prompts of the question
    provisionals: dict[str, Entity] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    _by_uid: dict[str, MemoryPoint] = field(init=False)  # with those of this step
    _active: list[str] = field(init=False)
    _successors: dict[str, str] = field(init=False, default_factory=dict)
    _retired: dict[str, str] = field(init=False, default_factory=dict)  # reasons

    def __post_init__(self) -> None:
        """Begin with the points of memory before the step."""
        self._by_uid = {point.uid: point for point in self.before}
        self._active = list(self._by_uid)

    @property
    def points(self) -> tuple[MemoryPoint, ...]:
        """The active points. A revised one has the place of the one before it, a new one is the last."""
        return tuple(self._by_uid[active] for active in self._active)

    @property
    def may_merge(self) -> bool:
        """Whether this step may merge: from the second on."""
        return self.config.merge != "off" and self.number > 1

    @property
    def merging(self) -> bool:
        """Whether this step merges now: where there is something to merge."""
        return self.may_merge and len(self._active) > 1

    def changes(self) -> StepChanges:
        """Return the changes so far, ready to be written."""
        return StepChanges(
            births=tuple(
                Birth(
                    point=self._by_uid[made.point],
                    revises=made.parts if made.kind == "revise" else (),
                    merges=made.parts if made.kind == "merge" else (),
                )
                for made in self._made()
            ),
            died=(*self._successors, *self._retired),
            retired=dict(self._retired),
            entities=tuple(self.provisionals.values()),
            relations=tuple(self.relations.values()),
        )

    def living(self, point: MemoryPoint | None) -> MemoryPoint | None:
        """Return a point's active version: itself, its successor, or None."""
        found = point.uid if point else ""
        while found in self._successors:
            found = self._successors[found]
        return self._by_uid[found] if found in self._active else None

    def number_points(self, memory: PromptMemory) -> PromptMemory:
        """Return the points in the order of their numbers, which they have in all prompts of the question.

        A point has the number of the one that it revises, or gets the next one if no prompt had either.
        """
        numbers = {self.numbers.setdefault(point.uid, len(self.numbers)): point for point in memory.points}
        ordered = tuple(sorted(numbers))
        return replace(memory, points=tuple(numbers[number] for number in ordered), numbers=ordered)

    def evolve(
        self, reply: Additions, *, known: Known, chunks: Numbered, entities: Resolve
    ) -> tuple[MemoryPoint | None, ...]:
        """Apply updates, then inserts. Return the point of each insertion, or None if it was dropped.

        `chunks` are what the reply may name by number. `entities` maps the key of a name to its entity. Names without
        an entry are ignored.
        """
        updated: set[int] = set()
        for revision in reply.update:
            reason = self._against_revision(revision, known, updated)
            if reason:
                self._drop(f"update of point {revision.point}: {reason}")
            elif (old := known[revision.point]) and self._revise(old, revision, chunks=chunks, entities=entities):
                updated.add(revision.point)
        cites = self._numbered and any(_existing(insertion.chunks, chunks) for insertion in reply.insert)
        return tuple(self._insert(one, chunks=chunks, entities=entities, cites=cites) for one in reply.insert)

    def merge(self, reply: MergeReply, *, known: Known) -> None:
        """Apply merges: V_k = V_i ∪ V_j (paper, version A, equation 8). Parts are superseded unless merges add."""
        merged: set[int] = set()
        for joining in reply.merge:
            if self.config.merge == "off":
                self._drop(f"merge of points {list(joining.points)}: merging is off")
                continue
            parts = self._parts(joining.points, known, merged)
            kept = self._of_statements and not joining.replaces
            mixed = kept and len({point.inferred for point in parts.values()}) > 1  # then each says it of itself
            said = [_marked(one.description, mixed and one.inferred) for one in parts.values()] if kept else []
            statement = " ".join([joining.description, *said]).strip()
            if len(parts) < 2 or not statement:
                reason = "the text is empty" if len(parts) >= 2 else "fewer than two points are left"
                self._drop(f"merge of points {list(joining.points)}: {reason}")
                continue
            if said and len(statement) > MOST_CHARACTERS:
                self._drop(f"merge of points {list(joining.points)}: longer than {MOST_CHARACTERS:,} characters")
                continue
            merged.update(parts)
            self._merge(list(parts.values()), self.statement(statement), inferred=False if mixed else None)

    def retire(self, retirements: Iterable[Retirement], *, known: Known) -> None:
        """Drop points from memory, each for a reason. Their lineage stays, and so does what was merged in this step."""
        merged = {operation.point for operation in self.operations if operation.kind == "merge"}
        for one in retirements:
            point = self.living(known[one.point]) if 0 <= one.point < len(known) else None
            if point is None or point.uid in merged:
                self._drop(f"retirement of point {one.point}: the point {'was merged' if point else 'does not exist'}")
                continue
            if not one.reason.strip():
                self._drop(f"retirement of point {one.point}: it says no reason")
                continue
            reason = self.statement(one.reason)
            self.operations.append(Operation(kind="retire", parts=(point.uid,), reason=reason))
            self._retired[point.uid] = reason
            self._active.remove(point.uid)

    def redescribe(self, entity: Entity) -> None:
        """Replace a new entity by this one, also in the points that involve it."""
        self.provisionals[entity.uid] = entity
        for point in self._by_uid.values():
            involved = tuple(entity if one.uid == entity.uid else one for one in point.entities)
            self._by_uid[point.uid] = replace(point, entities=involved)

    def pairs(self) -> dict[tuple[str, str], tuple[Entity, Entity]]:
        """Return every pair of a new entity and another one of the same new point, by their keys in order."""
        found: dict[tuple[str, str], tuple[Entity, Entity]] = {}
        for made in self._made():
            for entity, other in permutations(self._by_uid[made.point].entities, 2):
                if entity.uid in self.provisionals:
                    first, second = sorted((other, entity), key=lambda each: key(each.name))
                    found[ordered_keys(first.name, second.name)] = (first, second)
        return found

    def next_step(self, verdict: Verdict, inquiries: Sequence[Inquiry], *, known: Known) -> NextStep:
        """Return the sub-queries that a plan leads to. Surplus, empty ones and those asked before leave a note.

        Numbers of points refer to `known`. A concern without an active point is searched globally. Where each concern
        is judged by itself, the step's judgement is local if any of them is.
        """
        if verdict == "sufficient":
            return NextStep(judgement=verdict)
        config, points = self.config, [self.living(point) for point in known]
        notes = []
        if config.strategies not in ("adaptive", verdict) and verdict != "open":
            notes.append(f"the plan judged {verdict}, but this recipe always uses {config.strategies}")
        surplus = len(inquiries) - config.concerns
        if surplus > 0:
            notes.append(f"{surplus} concerns beyond {config.concerns} were dropped")
        asked = {collapse(text).casefold() for text in self.asked}
        subqueries: list[Subquery] = []
        for inquiry in inquiries[: config.concerns]:
            text = collapse(inquiry.subquery) or collapse(inquiry.text)
            if not text or text.casefold() in asked:
                notes.append(f"sub-query {text!r} was dropped: {'it was asked before' if text else 'it is empty'}")
                continue
            asked.add(text.casefold())
            targets: tuple[str, ...] = ()
            if _where(verdict, inquiry, config) == "local":
                targets, unknown = _targets(text, inquiry, points)
                notes += unknown
            strategy = "local" if targets else GLOBAL
            subqueries.append(Subquery(text=text, concern=collapse(inquiry.text), strategy=strategy, targets=targets))
        if not subqueries:
            notes.append("no sub-queries left: the investigation ends")
        judged = _judged(verdict, subqueries, config)
        return NextStep(judgement=judged, subqueries=tuple(subqueries), notes=tuple(notes))

    def statement(self, text: str) -> str:
        """Return a text as a statement: on one line, and no longer than a point."""
        statement = collapse(text)
        if len(statement) <= MOST_CHARACTERS:
            return statement
        self._drop(f"text truncated: {len(statement):,} characters, the limit is {MOST_CHARACTERS:,}")
        return statement[:MOST_CHARACTERS].rsplit(" ", 1)[0]

    def _made(self) -> Iterator[Operation]:
        return (operation for operation in self.operations if operation.point)

    def _parts(self, indices: Sequence[int], known: Known, merged: Set[int]) -> dict[int, MemoryPoint]:
        """Return the active points with these indices that are in no other merge."""
        parts: dict[int, MemoryPoint] = {}
        for index in dict.fromkeys(indices):
            point = self.living(known[index]) if 0 <= index < len(known) else None
            if point is None:
                self._drop(f"merge: point {index} does not exist")
            elif index in merged and "one_merge" in self.config.additions:
                self._drop(f"merge: point {index} is already in another merge")
            elif point in parts.values():
                self._drop(f"merge: point {index} is merged with another of these already")
            else:
                parts[index] = point
        return parts

    def _against_revision(self, revision: Revision, known: Known, updated: set[int]) -> str:
        if self.config.update == "off":
            return "updates are off"
        if not 0 <= revision.point < len(known) or known[revision.point] is None:
            return "the point does not exist"
        if revision.point in updated:
            return "the point was already updated"
        if not revision.description.strip():
            return "the text is empty"
        return ""

    def _revise(self, old: MemoryPoint, revision: Revision, *, chunks: Numbered, entities: Resolve) -> bool:
        description = self.statement(revision.description)
        inferred = old.inferred if revision.kind is None else revision.kind == "inference"
        if self._of_statements and not revision.replaces:
            said = "" if description in old.description else description
            if not said and description != old.description:  # a part of it tells the kind of that part alone
                inferred = old.inferred
            mixed = bool(said) and inferred != old.inferred  # then each says it of itself
            description = (
                f"{_marked(old.description, mixed and old.inferred)} {_marked(said, mixed and inferred)}".strip()
            )
            inferred = inferred and not mixed
            if len(description) > MOST_CHARACTERS:
                self._drop(f"update of point {revision.point}: longer than {MOST_CHARACTERS:,} characters with it")
                return False
        involved = self._involved(old, revision.entities, description=description, entities=entities)
        added = self._supports(revision.chunks, chunks) if self._numbered else _mentioning(involved, chunks)
        supports = tuple(dict.fromkeys((*old.chunks, *added)))
        before = (old.description, _things(old.entities), old.chunks, old.inferred)
        if (description, _things(involved), supports, inferred) == before:
            self._drop(f"update of point {revision.point}: nothing changed")
            return False
        new = self._born(description, involved, supports, "revise", old.uid, inferred=inferred)
        self._active[self._active.index(old.uid)] = new.uid  # it keeps its place
        self._successors[old.uid] = new.uid
        if old.uid in self.numbers:
            self.numbers[new.uid] = self.numbers.pop(old.uid)
        return True

    def _involved(
        self, old: MemoryPoint, names: Sequence[str], *, description: str, entities: Resolve
    ) -> tuple[Entity, ...]:
        if self.config.update == "keep":
            return old.entities
        named = self._described(self._named(names, entities), description)
        if self.config.update == "replace" and named:
            return _united(named)
        return _united(old.entities, named)

    def _insert(self, insertion: Insertion, *, chunks: Numbered, entities: Resolve, cites: bool) -> MemoryPoint | None:
        """Insert a point. If no point of its reply `cites` a chunk, it rests on those that mention its entities."""
        description = self.statement(insertion.description)
        named = _united(self._named(insertion.entities, entities))
        if not description or not named:
            self._drop(f"insert: {'the text is empty' if not description else 'no entity named'}")
            return None
        if len(named) < 2 and "single" not in self.config.additions:
            self._drop("insert: a point ties two entities together at least")
            return None
        if self._duplicate(description, named):
            self._drop("insert: an active point has the same text")
            return None
        involved = _united(self._described(named, description))
        supports = self._supports(insertion.chunks, chunks)
        if not supports and not cites:
            supports = _mentioning(involved, chunks)
        new = self._born(description, involved, supports, "insert", inferred=insertion.kind == "inference")
        self._active.append(new.uid)
        return new

    def _merge(self, parts: Sequence[MemoryPoint], description: str, *, inferred: bool | None) -> None:
        """Merge points. `write_step` links the new one to every entity of its parts, whatever is told here."""
        involved = _united(*(part.entities for part in parts))
        supports = tuple(dict.fromkeys(chunk for part in parts for chunk in part.chunks))
        uids = tuple(part.uid for part in parts)
        if self.config.merge == "add" and self._duplicate(description, involved):
            self._drop("merge: an active point has the same text")
            return
        new = self._born(description, involved, supports, "merge", *uids, inferred=inferred)
        self._active.append(new.uid)
        if self.config.merge != "add":
            self._successors |= dict.fromkeys(uids, new.uid)
            self._active = [active for active in self._active if active not in uids]

    def _born(
        self,
        text: str,
        entities: tuple[Entity, ...],
        chunks: tuple[str, ...],
        kind: OperationKind,
        *parts: str,
        inferred: bool | None = None,
    ) -> MemoryPoint:
        """Return a new point. Unless it is said, one that is made of others is inferred if any of them is."""
        made_from = [self._by_uid[part] for part in self._active if part in parts]
        lost = tuple(dict.fromkeys(chunk for point in made_from for chunk in point.deleted_chunks))
        new = MemoryPoint(
            uid=f"{self.memory}-{self.number}-{len(self.operations) + 1}",
            description=text,
            entities=entities,
            chunks=chunks,
            inferred=any(point.inferred for point in made_from) if inferred is None else inferred,
            born=self.number,
            deleted_chunks=lost,
        )
        self.operations.append(Operation(kind=kind, point=new.uid, parts=parts))
        self._by_uid[new.uid] = new
        return new

    def _duplicate(self, description: str, entities: Iterable[Entity]) -> bool:
        wanted = _things(entities)
        return any(point.description == description and _things(point.entities) == wanted for point in self.points)

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

    @property
    def _of_statements(self) -> bool:
        """Whether a reply adds to what points say, and does not write them anew."""
        return "statements" in self.config.additions

    @property
    def _numbered(self) -> bool:
        """Whether a prompt numbers chunks, so that a reply can name them."""
        return "numbers" in self.config.additions

    def _supports(self, indices: Sequence[int], chunks: Numbered) -> tuple[str, ...]:
        if not self._numbered:
            return ()
        known = _existing(indices, chunks)
        for index in sorted(set(indices) - set(known)):
            self._drop(f"evidence chunk {index}: the chunk does not exist")
        return tuple(chunks[index].uid for index in known)

    def _drop(self, reason: str) -> None:
        self.operations.append(Operation(kind="drop", reason=reason))


def _marked(text: str, inferred: bool) -> str:
    """Return a statement that stands beside others, marked if it is inferred and they are not."""
    return text + " (inferred)" * inferred


def names_of(reply: Additions) -> tuple[str, ...]:
    """Return every entity name of a reply, each once."""
    names = [name for revision in reply.update for name in revision.entities]
    names += [name for insertion in reply.insert for name in insertion.entities]
    return tuple(dict.fromkeys(collapse(name) for name in names if key(name) and len(name) <= LONGEST_NAME))


def uncited(reply: Additions, chunks: Numbered) -> bool:
    """Whether no insertion cites a chunk that exists: they then rest on those that mention most of their entities.

    Without any chunks that replies can cite, an update rests on these too.
    """
    if not chunks:
        return bool(reply.insert or reply.update)
    return bool(reply.insert) and not any(_existing(insertion.chunks, chunks) for insertion in reply.insert)


def _existing(indices: Sequence[int], chunks: Numbered) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index for index in indices if 0 <= index < len(chunks)))


def _mentioning(entities: Sequence[Entity], chunks: Numbered) -> tuple[str, ...]:
    """Return the evidence chunks that mention most of the entities, to support a point that cites no chunk."""
    wanted = _things(entities)
    shared = {chunk.uid: len(wanted & _things(chunk.entities)) for chunk in chunks}
    most = max(shared.values(), default=0)
    return tuple(uid for uid, count in shared.items() if count == most and most > 0)


def _united(*groups: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the union of the groups in order of first mention: each entity once, and of a class the first."""
    found: dict[str, Entity] = {}
    for entity in (entity for group in groups for entity in group):
        found.setdefault(entity.thing, entity)
    return tuple(found.values())


def _things(entities: Iterable[Entity]) -> set[str]:
    return {entity.thing for entity in entities}


def ordered_keys(name: str, other: str) -> tuple[str, str]:
    """Return the keys of two names, in order."""
    first, second = sorted((key(name), key(other)))
    return first, second


def _where(verdict: Verdict, inquiry: Inquiry, config: HGMemConfig) -> Where:
    """Return where to look for a concern: as the recipe always does, as the concern says, or as the plan does."""
    if config.strategies != "adaptive":
        return config.strategies
    if inquiry.strategy and (config.judging == "concern" or verdict == "open"):
        return inquiry.strategy
    if verdict in ("local", "global"):
        return verdict
    return "local" if inquiry.points else "global"


def _judged(verdict: Verdict, subqueries: Sequence[Subquery], config: HGMemConfig) -> Judgement:
    """Return the judgement of a step, of which some sub-queries may be local and others global."""
    if config.strategies != "adaptive":
        return config.strategies
    if verdict != "open" and config.judging == "step":
        return verdict
    return "local" if any(subquery.targets for subquery in subqueries) else "global"


def _targets(text: str, inquiry: Inquiry, points: Known) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the uids of the active points that a concern names, and notes on others that it names."""
    named = {at: points[at] if 0 <= at < len(points) else None for at in inquiry.points}
    targets = tuple(dict.fromkeys(point.uid for point in named.values() if point))
    if not targets:
        return (), [f"sub-query {text!r} names no active point: searched globally"]
    return targets, [f"sub-query {text!r}: point {at} does not exist" for at, point in named.items() if not point]
