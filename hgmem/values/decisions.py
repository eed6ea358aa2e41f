"""Decisions on whether two entities are the same, and the classes of entities that follow from them."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["same", "different", "open"]
Author: TypeAlias = Literal["person", "rule", "model"]

RANKS: Mapping[str, int] = {"person": 0, "rule": 1, "model": 2}  # the lower one prevails


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether the entities `a` and `b` (uids, `a` < `b`) are the same, by whom it was decided, and why.

    An `open` one keeps rules and the model from deciding the pair again, and is of no class. The `names` are those of
    the time of the decision.
    """

    uid: str
    a: str
    b: str
    name_a: str
    name_b: str
    kind: Verdict
    by: Author
    reason: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float = 1.0
    created_at: str = ""

    @property
    def order(self) -> tuple[int, float, str]:
        """Its place among decisions: rank, then confidence, then uid."""
        return RANKS[self.by], -self.confidence, self.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStatus:
    """A decision and its state: it `stands`, is `void` or `open`, or is `asleep` while an entity of it is gone.

    `replaced` says what a person had decided on the pair before, where a decision was just made.
    """

    decision: Decision
    state: Literal["stands", "void", "asleep", "open"]
    why: str = ""
    replaced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionReport:
    """What a run of entity resolution did, or in a dry run would do.

    `joined` counts pairs that rules joined. Of the pairs that the model read, it found `same`, `different` or `unclear`
    ones. `left` are undecided pairs, each of which takes a model call or a person. Each of the `lists` of entities
    takes a call too, and may propose further pairs. `calls` are those of a dry run for both, none without a language
    model. `mended` counts entities that had a wrong class.
    """

    corpus: str
    entities: int
    joined: int = 0
    same: int = 0
    different: int = 0
    unclear: int = 0
    left: int = 0
    lists: int = 0
    calls: int = 0
    mended: int = 0
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An entity as it is shown to who decides: passages are parts of chunks, by their uids."""

    uid: str
    name: str
    type: str
    description: str
    passages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPair:
    """Two entities that may be one and that nobody has decided on, with what speaks for it, from 0 to 1."""

    a: Seen
    b: Seen
    why: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Classes of at least two entities (uids, sorted) by their own uid, the least of these.

    `void` has the decisions (uids) that do not count: a `same` one with the `different` decision (uid) that keeps its
    entities apart, and a `different` one, with nothing, whose entities decisions of higher rank join.
    """

    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)

    @property
    def of(self) -> dict[str, str]:
        """The uid of the class of each entity that is in one."""
        return {member: uid for uid, members in self.members.items() for member in members}


def classes(decisions: Iterable[Decision], alive: Container[str]) -> Classes:
    """Return the classes of the entities that exist (`alive`).

    `same` decisions are taken in their order. One that would join two entities that a `different` decision of at least
    its rank keeps apart is void. Decisions on entities that do not exist have no effect.
    """
    awake = sorted((one for one in decisions if one.a in alive and one.b in alive), key=lambda one: one.order)
    apart: dict[str, list[Decision]] = defaultdict(list)
    for one in awake:
        if one.kind == "different":
            apart[one.a].append(one)
            apart[one.b].append(one)
    groups: dict[str, set[str]] = {}
    void: dict[str, str] = {}
    for one in awake:
        if one.kind != "same":
            continue
        small, large = sorted((groups.setdefault(end, {end}) for end in (one.a, one.b)), key=len)
        if small is large:
            continue
        if barrier := _barrier(one, small, large, apart):
            void[one.uid] = barrier.uid
            continue
        large |= small
        groups.update(dict.fromkeys(small, large))
    void |= {one.uid: "" for one in awake if one.kind == "different" and one.b in groups.get(one.a, ())}
    members = {min(group): tuple(sorted(group)) for group in groups.values() if len(group) > 1}
    return Classes(members=members, void=void)


def _barrier(same: Decision, small: set[str], large: set[str], apart: Mapping[str, list[Decision]]) -> Decision | None:
    """Return the first decision that keeps apart what `same` would join."""
    found = (
        one
        for member in small
        for one in apart.get(member, ())
        if RANKS[one.by] <= RANKS[same.by] and (one.b if one.a == member else one.a) in large
    )
    return min(found, key=lambda one: one.order, default=None)
