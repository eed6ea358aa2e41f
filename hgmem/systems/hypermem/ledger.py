"""The ledger of facts: which facts repeat, replace or contradict earlier ones, and since when.

One call an episode compares its facts with the nearest earlier ones. What it judges is kept for each pair of facts, and
the ledger is a function of these judgements and of the facts' times. Which facts are compared follows from all facts in
order of time, so a message that arrives late, or goes, leaves the ledger of the messages in order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, StoredRow, Tie, Unit
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.values import uids_of
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.services import Services
from hgmem.systems.hypermem import tasks
from hgmem.systems.hypermem.dialogues import dialogues, sortable
from hgmem.systems.hypermem.episodes import FACT
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.states import Relation, slots

JUDGEMENTS = "judgements"
SUPERSEDES, REPEATS, CONTRADICTS = "SUPERSEDES", "REPEATS", "CONTRADICTS"
_NEAREST = 3  # earlier facts that each fact is compared with
_IN_ROLE = 3  # latest earlier facts of one subject and role, which each fact of it is compared with
_LEAST = 0.35  # cosine of a near fact
_KINDS = get_args(Relation)
_FIRST = 2.0  # above every cosine: facts of one subject and role are shown first
_BLOCK = 256  # facts whose cosines are computed together
MOST = 24  # earlier facts that one call shows

Moment: TypeAlias = tuple[str, str, int]  # of a fact: its time, its conversation, and the place of its message there
# A fact and an earlier one (keys), how it stands to that, whether rules guessed it, and whether a change lies ahead.
Judged: TypeAlias = tuple[str, str, Relation, bool, bool]


def _moments(reading: Reading, facts: Iterable[StoredRow]) -> dict[str, Moment]:
    """Return when each fact (key) was said. A message without a time is said when the one before it was."""
    places: dict[str, dict[str, tuple[str, int]]] = {}
    for dialogue in dialogues(reading.chunks()):
        time, known = "", places.setdefault(dialogue.document, {})
        for at, message in enumerate(dialogue.messages):
            time = sortable(message.time) or time
            known[message.id] = (time, at)
    found: dict[str, Moment] = {}
    for fact in facts:
        document, _, rest = fact.key.partition("/")
        ids = _texts(fact, "message_ids") or [rest.rpartition("/")[0]]
        time, at = max((places[document][id_] for id_ in ids if id_ in places.get(document, ())), default=("", 0))
        found[fact.key] = (time, document, at)
    return found


def _texts(fact: StoredRow, name: str) -> list[str]:
    return list(fact.properties.get(name) or ())  # type: ignore[arg-type]


def _near(facts: Sequence[StoredRow]) -> Iterator[dict[int, float]]:
    """Yield for each of the facts in order the places of earlier ones that it is compared with, with their cosine."""
    vectors = np.asarray([row.own_embedding or row.embedding for row in facts], dtype=np.float32)
    roles: dict[object, list[int]] = {}
    for begin in range(0, len(facts), _BLOCK):
        end = min(begin + _BLOCK, len(facts))
        cosines = vectors[:end] @ vectors[begin:end].T
        for at in range(begin, end):
            earlier = cosines[:at, at - begin]
            nearest = np.argpartition(-earlier, _NEAREST)[:_NEAREST] if at > _NEAREST else range(at)
            found = {int(other): float(earlier[other]) for other in nearest if earlier[other] >= _LEAST}
            for slot in slots(str(facts[at].properties["content"])):
                known = roles.setdefault(slot, [])
                found |= dict.fromkeys(known[-_IN_ROLE:], _FIRST)
                known.append(at)
            yield found


def comparisons(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes whose facts have earlier ones to be compared with, none without a ledger."""
    if not config.ledger:
        return
    rows = reading.rows(FACT, vectors=True)
    moments = _moments(reading, rows)
    spans: dict[str, list[StoredRow]] = {}
    for row in sorted(rows, key=lambda row: (moments[row.key], row.key)):
        spans.setdefault("" if config.span == "corpus" else row.document, []).append(row)
    for facts in spans.values():
        episodes: dict[str, dict[int, dict[int, float]]] = {}
        for at, near in enumerate(_near(facts)):
            if near:
                episodes.setdefault(facts[at].key.rpartition("/")[0], {})[at] = near
        for episode, found in episodes.items():
            cosines: dict[int, float] = {}
            for near in found.values():
                for other in near.keys() - found.keys():
                    cosines[other] = max(near[other], cosines.get(other, near[other]))
            old = sorted(cosines, key=lambda other: (-cosines[other], -other))[:MOST]
            every = sorted({*old, *found})
            yield Unit(
                key=episode,
                rows=[facts[at] for at in every],
                values={"new": [every.index(at) for at in found]},
            )


def judge(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Judge how the facts of an episode stand to earlier ones. The output has pairs of keys alone, newer first."""
    new = unit.values["new"]
    guess = serving(services.model, tasks.CompareFacts.name).name == ExtractiveModel.name
    pairs, named = {}, set()
    for one in services.reply(tasks.CompareFacts(facts=unit.rows, new=tuple(new))).pairs:
        kind = one.relation.strip().casefold()
        if one.number in new and 0 <= one.earlier < one.number and kind in _KINDS:
            newer, older = unit.rows[one.number], unit.rows[one.earlier]
            pairs[newer.key, older.key] = [newer.key, older.key, kind, guess, one.ahead]
            named |= {newer.uid, older.uid}
    return Made(output=list(pairs.values()), output_rests_on=sorted(named) or [unit.rows[new[0]].uid])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger: a fact, an earlier one, and how it stands to that. `via` are facts that it follows from.

    `since` is the time from which a fact that supersedes holds.
    """

    fact: str
    earlier: str
    kind: str
    guess: bool
    since: str = ""
    via: tuple[str, ...] = ()


def ledger(judged: Iterable[Judged], moments: Mapping[str, Moment], begins: Mapping[str, str]) -> list[Entry]:
    """Return the ledger of judgements. `begins` is the first day of what facts tell, as far as it is known.

    A fact supersedes an earlier one that it updates, and all that say the same as that one and are as early. One that
    says the same repeats the first of them, unless that was superseded in between: then it holds anew. Two of one
    message, or of two conversations at one time, supersede nothing: they contradict each other.
    """
    known = [one for one in judged if one[0] in moments and one[1] in moments]
    same: dict[str, dict[str, bool]] = {}
    for newer, older, kind, guess, _ in known:
        if kind == "same":
            same.setdefault(newer, {})[older] = guess
            same.setdefault(older, {})[newer] = guess
    classes = _classes(same)
    found = [*_changes(known, classes, moments, begins)]
    ended: dict[str, list[Moment]] = {}
    for entry in found:
        if entry.kind == SUPERSEDES:
            ended.setdefault(entry.earlier, []).append(moments[entry.fact])
    found += _repeated(same, classes, moments, ended)
    return list({(one.fact, one.earlier, one.kind): one for one in reversed(found)}.values())


def _changes(
    judged: Iterable[Judged], classes: Mapping[str, list[str]], moments: Mapping[str, Moment], begins: Mapping[str, str]
) -> Iterator[Entry]:
    for newer, older, kind, guess, ahead in sorted(judged):
        if kind not in ("updates", "contradicts"):
            continue
        if kind == "contradicts" or not _before(moments[older], moments[newer]):
            yield Entry(fact=newer, earlier=older, kind=CONTRADICTS, guess=guess)
            continue
        said, starts = moments[newer][0], begins.get(newer, "")
        for one in (older, *(each for each in classes.get(older, ()) if each != older)):
            if one in classes.get(newer, ()) or not _before(moments[one], moments[newer]):
                continue
            told = starts and starts >= moments[one][0][:10] and (ahead or starts <= said[:10])
            via = () if one == older else (older,)
            since = starts if told else said
            yield Entry(fact=newer, earlier=one, kind=SUPERSEDES, guess=guess, since=since, via=via)


def _repeated(
    same: Mapping[str, Mapping[str, bool]],
    classes: Mapping[str, list[str]],
    moments: Mapping[str, Moment],
    ended: Mapping[str, Sequence[Moment]],
) -> Iterator[Entry]:
    """Yield for each fact the first that said the same, unless that was superseded in between."""
    for fact, others in same.items():
        earlier = [one for one in classes[fact] if (moments[one], one) < (moments[fact], fact)]
        going_on = [one for one in earlier if not any(by < moments[fact] for by in ended.get(one, ()))]
        if going_on:
            first = min(going_on, key=lambda one: (moments[one], one))
            yield Entry(fact=fact, earlier=first, kind=REPEATS, guess=all(others.values()))


def _before(older: Moment, newer: Moment) -> bool:
    """Return whether one moment is known to be before another: in time, or in the order of one conversation."""
    return older < newer and (older[1] == newer[1] or "" < older[0] < newer[0])


def _classes(same: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return for each fact all that say the same, itself included."""
    found: dict[str, list[str]] = {}
    for fact in sorted(same):
        if fact not in found:
            waiting, members = [fact], {fact}
            while waiting:
                more = set(same[waiting.pop()]) - members
                members |= more
                waiting += more
            found |= dict.fromkeys(members, sorted(members))
    return found


def entries(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the lines of the ledger, each by itself, so that what rests on others stays where one goes."""
    judged: list[Judged] = [tuple(one) for output in reading.outputs(JUDGEMENTS).values() for one in output.value]
    rows = {row.key: row for row in reading.rows(FACT)} if judged else {}
    begins = {key: str(row.properties["starts"]) for key, row in rows.items()}
    for entry in ledger(judged, _moments(reading, rows.values()), begins):
        keys = dict.fromkeys((entry.fact, entry.earlier, *entry.via))
        yield Unit(
            key=f"{entry.fact} {entry.kind} {entry.earlier}",
            rows=[rows[key] for key in keys],
            values={"kind": entry.kind, "guess": entry.guess, "since": entry.since},
        )


def enter(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Tie a fact to the earlier one that it repeats, supersedes or contradicts."""
    fact, earlier = unit.rows[:2]
    kind = unit.values["kind"]
    properties: dict[str, str | bool] = {"guess": unit.values["guess"]}
    if kind == SUPERSEDES:
        properties["since"] = unit.values["since"]
    return Made(ties=[Tie(source=fact.uid, type=kind, target=earlier.uid, properties=properties)])


INVARIANTS = (
    OwnInvariant(
        name="ledger",
        meaning="a fact supersedes or repeats one that was said later, or the ledger does not tell since when or how",
        violated=lambda database, corpus: uids_of(database, "broken_ledger", corpus=corpus),
    ),
)
