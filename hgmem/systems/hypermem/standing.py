"""How facts stand: since when they hold, what ended them, what they replaced, and what contradicts them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope
from hgmem.graph.values import Runner
from hgmem.systems.hypermem.times import Days
from hgmem.values.evidence import Ended

LAST = "~"  # a text after every time
_CHAIN = 10  # changes of one thing, one after the other, that are followed to what holds now
_LINKED = 3  # facts that are told of one on each side


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A row that a level kept, with its score, its properties, and the chunks (uids) that it rests on."""

    uid: str
    kind: str
    score: float
    properties: Mapping[str, Any]
    chunks: tuple[str, ...]

    @property
    def days(self) -> Days:
        """The days of what a fact tells, or else the day on which it was said."""
        said = str(self.properties["said_at"])[:10]
        return (self.properties["starts"], self.properties["ends"]) if self.properties["starts"] else (said, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """Another fact that the ledger ties to one, with the time from which a change holds. A `guess` is of rules."""

    fact: Recalled
    since: str
    guess: bool


@dataclass(slots=True, kw_only=True)
class Standing:
    """What the ledger says of a fact.

    `ended` are the facts that superseded it, the first one first, `replaced` those that it superseded and `against`
    those that contradict it, the latest first, `repeats` the first that said the same, if it has held since then.
    """

    ended: list[Linked] = field(default_factory=list)
    replaced: list[Linked] = field(default_factory=list)
    against: list[Linked] = field(default_factory=list)
    repeats: list[Linked] = field(default_factory=list)

    def until(self, now: str) -> str:
        """Return the time at which it ended, or an empty text if it holds at a time (`now`)."""
        return min((one.since for one in self.ended if one.since <= now), default="")

    def notes(self, told: frozenset[str] = frozenset()) -> list[str]:
        """Return it in words. Of facts that are `told` beside it (uids), only the day that the first one ended it."""
        found = [f"since {one.fact.properties['said_at'][:10]}" for one in self.repeats[:1]]
        latest = self.replaced[:1]
        for word, linked in (("until", self.ended), ("before that", latest), ("contradicted by", self.against)):
            for at, one in enumerate(linked[:_LINKED]):
                day = f" {one.since[:10]}" if word == "until" and one.since else ""
                beside = one.fact.uid in told and (bool(day) or word == "before that")
                if beside and (at or not day):
                    continue
                text = "" if beside else f": {one.fact.properties['content']}"
                found.append(f"{word}{day}{', it seems' * one.guess}{text}")
        return found


_PLACES = {("SUPERSEDES", False): "ended", ("SUPERSEDES", True): "replaced", ("REPEATS", True): "repeats"}


def standings(database: Runner, *, scope: Scope, uids: Sequence[str], until: str = LAST) -> dict[str, Standing]:
    """Return how facts (uids) stand by what was said `until` a time, and in a scope."""
    found = {uid: Standing() for uid in uids}
    rows = database.run("ledger_of", corpus=scope.corpus, documents=scope.uids, uids=list(uids), until=until)
    for row in rows:
        place = "against" if row["type"] == "CONTRADICTS" else _PLACES.get((row["type"], row["newer"]))
        if place:
            linked = Linked(fact=to_recalled(row, "Fact"), since=row["since"] or "", guess=bool(row["guess"]))
            getattr(found[row["uid"]], place).append(linked)
    return found


def chained(database: Runner, *, scope: Scope, uids: Sequence[str], until: str = LAST) -> dict[str, Standing]:
    """Return how facts (uids) stand, and how those that ended them, one after the other, do."""
    found: dict[str, Standing] = {}
    asked = list(uids)
    for _ in range(_CHAIN):
        found |= standings(database, scope=scope, uids=asked, until=until)
        asked = sorted({one.fact.uid for how in found.values() for one in how.ended} - found.keys())
        if not asked:
            break
    return found


def ended_facts(database: Runner, *, scope: Scope, chunks: Iterable[str], until: str = LAST) -> tuple[Ended, ...]:
    """Return what facts of chunks (uids) tell that no longer holds at a time, and what holds instead."""
    rows = database.run("facts_behind", corpus=scope.corpus, documents=scope.uids, uids=list(chunks), until=until)
    holding = {row["content"] for row in rows if row["since"] is None}
    ended = {row["content"]: row for row in rows if row["content"] not in holding}
    found = []
    for text, row in ended.items():
        by, seen = row["by"], {text}
        while by in ended and by not in seen:
            seen.add(by)
            by = ended[by]["by"]
        found.append(Ended(text=text, until=row["since"], by=by, guess=row["guess"]))
    return tuple(found)


def to_recalled(row: Row, kind: str) -> Recalled:
    """Return what a row tells of a fact, an episode or a topic."""
    return Recalled(
        uid=row["row"]["uid"], kind=kind, score=row["score"], properties=row["row"], chunks=tuple(row["chunks"])
    )
