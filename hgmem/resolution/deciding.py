"""Decide that two entities are the same or different, take decisions back, and list them with what they come to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

from hgmem.corpus.aggregation import lock_entities
from hgmem.corpus.paging import batches
from hgmem.errors import ConflictError, UsageError
from hgmem.graph import resolution as stored
from hgmem.graph.database import Row, Transaction
from hgmem.resolution.names import near_names
from hgmem.services import Services, settled_corpus
from hgmem.text import identity
from hgmem.text.language import similar_ones
from hgmem.values.decisions import RANKS, Author, Decision, DecisionStatus, Verdict, classes
from hgmem.values.graph_elements import EntityUid

TOGETHER = 500  # decisions a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is decided of two entities (uids)."""

    ends: tuple[str, str]
    kind: Verdict
    by: Author
    reason: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float = 1.0
    created_at: str = ""  # now


def decide(services: Services, judgements: Iterable[Judgement], *, whole: bool = False) -> list[Decision]:
    """Write decisions with the classes that follow from them, and return them.

    Rules' and the model's on entities that were deleted meanwhile are left out; for a person's, `ConflictError` is
    raised. With `whole`, all are written in one transaction.
    """
    settled_corpus(services)
    found = list(judgements)
    return [
        one
        for batch in batches(found, size=len(found) if whole and found else TOGETHER)
        for one in services.database.write(_decide, services.corpus, batch)[0]
    ]


def _decide(transaction: Transaction, corpus: str, judgements: Sequence[Judgement]) -> tuple[list[Decision], list[Row]]:
    """Write decisions, and return them with all decisions on the entities whose classes they may change."""
    stored.lock_ready(transaction, corpus=corpus)
    uids = sorted({uid for one in judgements for uid in one.ends})
    lock_entities(transaction, corpus=corpus, uids=map(EntityUid, uids))  # who deletes one waits, or was first
    names = stored.entities_named(transaction, corpus=corpus, uids=uids)
    gone = [one for one in judgements if not names.keys() >= set(one.ends)]
    if any(one.by == "person" for one in gone):
        raise ConflictError(f"an entity of corpus {corpus!r} was deleted meanwhile: nothing was decided")
    decisions = [decision_of(corpus, one, names) for one in judgements if one not in gone]
    return decisions, stored.write_decisions(transaction, corpus=corpus, decisions=decisions)


def decision_of(corpus: str, judged: Judgement, names: Mapping[str, str]) -> Decision:
    """Return what is to be written, with the names of the entities by uid."""
    fields = asdict(judged)
    a, b = sorted(fields.pop("ends"))
    uid = identity.decision_uid(corpus, (a, b), judged.by)
    return Decision(uid=uid, a=a, b=b, name_a=names[a], name_b=names[b], **fields)


def decide_pair(
    services: Services, ends: tuple[str, str], *, kind: Verdict, reason: str, replace_others: bool
) -> DecisionStatus:
    """Decide for a person on two entities (names or uids), and return the decision with what it comes to.

    If it stands, its `why` names the decisions that it makes void. Raises `UsageError` for an unknown or provisional
    entity, and for one entity named twice; without `replace_others`, `ConflictError` if a person has decided already.
    """
    uids = find_entities(services, ends)
    a, b = sorted(uids[name] for name in ends)
    if a == b:
        raise UsageError(f"{ends[0]!r} and {ends[1]!r} name one entity: name two")
    judged = Judgement(ends=(a, b), kind=kind, by="person", reason=reason or "")
    return services.database.write(_decide_pair, services.corpus, judged, replace_others)


def _decide_pair(transaction: Transaction, corpus: str, judged: Judgement, replace_others: bool) -> DecisionStatus:
    stored.lock_ready(transaction, corpus=corpus)
    uid = identity.decision_uid(corpus, judged.ends, judged.by)
    earlier = stored.read(stored.decisions_on(transaction, corpus=corpus, uids=judged.ends))[0].get(uid)
    if earlier and not replace_others:
        raise ConflictError(f"{_earlier(earlier)}: decide by name to replace this")
    every, alive = stored.read(_decide(transaction, corpus, [judged])[1])
    known = classes(filter(None, {**every, uid: earlier}.values()), alive).void
    states = _statuses(every, alive)
    made = next(one for one in states if one.decision.uid == uid)
    void = [one.decision for one in states if one.state == "void" and one.decision.uid not in {*known, uid}]
    told = "; ".join(f"{one.name_a!r} and {one.name_b!r} are {one.kind}, by a {one.by} ({one.uid})" for one in void)
    why = made.why or (f"makes void: {told}" if told else "")
    return replace(made, why=why, replaced=_earlier(earlier) if earlier else "")


def _earlier(one: Decision) -> str:
    """Return in words what was decided before, by whom, when and why."""
    age = max(timedelta(), datetime.now(UTC) - datetime.fromisoformat(one.created_at))
    why = f" ({one.reason})" if one.reason else ""
    when = f"at {one.created_at}, {str(age).partition('.')[0]} ago"
    return f"{one.name_a!r} and {one.name_b!r} were decided {one.kind!r} by a {one.by} {when}{why}"


def find_entities(services: Services, names: Sequence[str]) -> dict[str, str]:
    """Return the uids of the entities with these names or uids. Raises `UsageError` that names each unknown one."""
    settled_corpus(services)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise UsageError(f"entity {wrong[0]!r} is not text: name two entities of one corpus, by name or uid")
    corpus = services.corpus
    uids = {name: (name, identity.uid(corpus, "entity", identity.key(name))) for name in names}
    wanted = {uid for both in uids.values() for uid in both}
    known = stored.entities_named(services.database, corpus=corpus, uids=wanted)
    found = {name: next((uid for uid in both if uid in known), "") for name, both in uids.items()}
    if unknown := [name for name, uid in found.items() if not uid]:
        raise UsageError(_unknown(services, unknown))
    return found


def _unknown(services: Services, names: Sequence[str]) -> str:
    """Return why names stand for no entity of the corpus."""
    near = near_names(services, names)
    provisional = " (a provisional entity of one memory: index a document that names it)"
    why = {name: provisional if identity.is_provisional(name) else similar_ones(near[name]) for name in names}
    listed = ", ".join(f"{name!r}{why[name]}" for name in names)
    return f"corpus {services.corpus!r} has no entity {listed}: name two entities of one corpus, by name or uid"


def decisions(services: Services) -> list[DecisionStatus]:
    """Return all decisions of the corpus by rank, each with its state and why it is void."""
    settled_corpus(services)
    return _statuses(*stored.read(stored.all_decisions(services.database, corpus=services.corpus)))


def _statuses(found: Mapping[str, Decision], alive: set[str]) -> list[DecisionStatus]:
    void = classes(found.values(), alive).void
    return [_status(one, found, alive, void) for one in sorted(found.values(), key=lambda one: one.order)]


def _status(one: Decision, every: Mapping[str, Decision], alive: set[str], void: Mapping[str, str]) -> DecisionStatus:
    gone = [name for uid, name in ((one.a, one.name_a), (one.b, one.name_b)) if uid not in alive]
    if gone:
        why = f"{' and '.join(map(repr, gone))} {'is' if len(gone) == 1 else 'are'} not in the corpus now"
        return DecisionStatus(decision=one, state="asleep", why=why)
    if one.uid not in void:
        return DecisionStatus(decision=one, state="open" if one.kind == "open" else "stands")
    barrier = every.get(void[one.uid])
    why = "decisions of higher rank join the two"
    if barrier:
        why = f"{barrier.name_a!r} and {barrier.name_b!r} are different, as a {barrier.by} decided ({barrier.uid})"
    return DecisionStatus(decision=one, state="void", why=why)


def undo(services: Services, named: Sequence[str] = (), *, by: Author | None = None) -> list[Decision]:
    """Take decisions back, and return them: those with a uid, those on two entities, or all of one author.

    `named` are uids of decisions, or the names or uids of two entities. What a rule or the model decided stays as an
    `open` decision, so that it is not decided again; undoing that one deletes it. Raises `UsageError` if there is none
    of those named.
    """
    if by is not None and by not in RANKS:
        raise UsageError(f"by={by!r} must be one of {', '.join(RANKS)}")
    if not named and by is None:
        raise UsageError("nothing to undo is named: name decisions, two entities, or whose decisions (by)")
    every = [one.decision for one in decisions(services)]
    chosen = _named(services, named, every) if named else [one for one in every if one.kind != "open"]
    found = [one for one in chosen if by in (None, one.by)]
    if named and not found:
        raise UsageError(f"corpus {services.corpus!r} has no such decision: `hgmem resolve list` lists them")
    return [
        one for batch in batches(found, size=TOGETHER) for one in services.database.write(_undo, services.corpus, batch)
    ]


def _named(services: Services, named: Sequence[str], every: Sequence[Decision]) -> list[Decision]:
    known = {one.uid: one for one in every}
    if known.keys() >= set(named):
        return [known[uid] for uid in named]
    if len(named) != 2:
        unknown = next(name for name in named if name not in known)
        raise UsageError(f"corpus {services.corpus!r} has no decision {unknown!r}: name uids, or two entities")
    wanted = [{name, identity.key(name)} for name in named]
    return [
        one
        for one in every
        for a, b in permutations(({one.a, identity.key(one.name_a)}, {one.b, identity.key(one.name_b)}))
        if a & wanted[0] and b & wanted[1]
    ]


def _undo(transaction: Transaction, corpus: str, chosen: Sequence[Decision]) -> list[Decision]:
    stored.lock_ready(transaction, corpus=corpus)
    rows = stored.decisions_on(transaction, corpus=corpus, uids={end for one in chosen for end in (one.a, one.b)})
    uids = {one.uid for one in chosen}
    found = [one for uid, one in stored.read(rows)[0].items() if uid in uids]
    kept = [one for one in found if one.by != "person" and one.kind != "open"]
    opened = [replace(one, kind="open", reason=f"undone: {one.kind}: {one.reason}", created_at="") for one in kept]
    stored.write_decisions(transaction, corpus=corpus, decisions=opened)
    stored.delete_decisions(transaction, corpus=corpus, decisions=[one for one in found if one not in kept])
    return found
