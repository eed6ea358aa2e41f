"""What the answer is shown within one budget: a dated table of facts, narratives, and messages.

Where a language model wrote the facts, they lead, and messages that they do not cover follow. Facts that rules wrote
repeat sentences of messages: messages lead then, beside the facts that tell a day or a change.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.builds import find_build
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.extractive.key_phrases import stems
from hgmem.retrieval.answer import origins
from hgmem.retrieval.rendering import statements, within
from hgmem.services import Services
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.standing import Linked, Recalled, Standing
from hgmem.systems.hypermem.times import NO_DAYS, Days, overlap
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk

_BESIDE = 12  # tokens of a line or passage beside its text
_NARRATIVES = 0.2  # share of the budget that narratives get, where a language model wrote them
# Share of the budget that facts get: by whether a language model wrote them, and whether the question counts or lists.
_SHARES = {(True, False): 0.5, (True, True): 0.7, (False, False): 0.05, (False, True): 0.1}
_COVERED = 0.5  # of a chunk's messages: from this share on, told facts stand for it
_LISTS = re.compile(
    r"\bhow (?:many|often)\b(?P<many>(?: \w+){0,3})"
    r"|\b(?:which|what)(?: \w+){0,2}? (?P<what>(?!is\b|was\b|does\b|has\b)\w+s(?: of \w+)?)\b"
    r"|\b(?:list|name|tell me)(?: me)?(?: all)?(?: of)?(?: the)? (?P<all>\w+s)\b",
    re.IGNORECASE,
)
_ALIKE = 0.6  # of the words of two facts of one day, from which they tell one event


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a question asks for beside its subject: of which days, and what it counts or lists, as stems.

    `by_model`: a language model wrote the facts that it asks.
    """

    days: Days = NO_DAYS
    listed: frozenset[str] | None = None
    by_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the answer is shown: chunks and built rows to cite, statements, and notes."""

    chunks: tuple[Chunk, ...] = ()
    built: tuple[BuiltPassage, ...] = ()
    statements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a question found, the best first, and how the facts stand."""

    facts: Sequence[Recalled]
    episodes: Sequence[Recalled]
    chunks: Sequence[Chunk]
    standing: Mapping[str, Standing]


def listed(question: str) -> frozenset[str] | None:
    """Return the stems of what a question counts or lists, or None if it does neither."""
    found = _LISTS.search(question)
    return frozenset(stems(next(filter(None, found.groups()), ""))) if found else None


def written_by_model(services: Services) -> bool:
    """Return whether a language model wrote the facts of the build."""
    build = find_build(services.database, corpus=services.corpus, system="hypermem")
    return build is not None and build.model != ExtractiveModel.name


def in_force(facts: Sequence[Recalled], standing: Mapping[str, Standing], wanted: Wanted) -> list[Recalled]:
    """Return facts in their order, each after what holds now and those that ended it, one for all that say the same.

    Facts of the days that a question tells come first, and what it counts or lists before the rest.
    """
    found: dict[str, Recalled] = {}
    for fact in facts:
        how = standing.get(fact.uid, Standing())
        for one in (*_ends(fact, standing), fact):
            if not (how.repeats and one is fact and how.repeats[0].fact.uid in found):
                found.setdefault(one.uid, one)
    ranked = list(found.values())
    if about := wanted.listed:
        ranked.sort(key=lambda fact: about.isdisjoint(stems(str(fact.properties["content"]))))
    if wanted.days != NO_DAYS:
        ranked.sort(key=lambda fact: not overlap(fact.days, wanted.days))
    return list(_events(ranked)) if wanted.listed is not None else ranked


def _ends(fact: Recalled, standing: Mapping[str, Standing]) -> list[Recalled]:
    """Return the facts that ended a fact, the latest first, and before them the last one of those that followed."""
    direct = [linked.fact for linked in reversed(_in_order(standing.get(fact.uid, Standing())))]
    chain = {fact.uid: fact}
    while ended := _in_order(standing.get(next(reversed(chain)), Standing())):
        last = ended[-1].fact
        if last.uid in chain:
            break
        chain[last.uid] = last
    return [*list(chain.values())[-1:], *direct] if direct else []


def _in_order(how: Standing) -> list[Linked]:
    """Return what ended a fact, the latest last."""
    return sorted(how.ended, key=lambda one: (one.since, str(one.fact.properties.get("said_at", "")), one.fact.uid))


def _events(facts: Iterable[Recalled]) -> Iterator[Recalled]:
    """Yield the facts without those that tell an event of one day once more."""
    told: dict[Days, list[set[str]]] = {}
    for fact in facts:
        words = set(stems(str(fact.properties["content"])))
        known = told.setdefault(fact.days, [])
        if not any(len(words & one) >= _ALIKE * min(len(words), len(one)) for one in known if words and one):
            yield fact
        known.append(words)


def select(services: Services, found: Found, wanted: Wanted, *, config: HyperMemConfig) -> Shown:
    """Return what of ranked facts, episodes and chunks is shown: as much as fits into `evidence_tokens`."""
    budget, by_model, standing = config.evidence_tokens, wanted.by_model, found.standing
    worth = [fact for fact in found.facts if by_model or wanted.listed is not None or _tells(fact, standing)]
    share = _SHARES[by_model, wanted.listed is not None] if "facts" in config.show else 0
    table = list(_fitting(worth, standing, tokens=int(share * budget)))
    narrates = by_model and "episodes" in config.show
    told = list(_fitting(found.episodes, standing, tokens=int(_NARRATIVES * budget))) if narrates else []
    used = sum(_cost(row, standing) for row in (*table, *told))
    covered = {(row.properties["document"], id_) for row in table for id_ in row.properties["message_ids"]}
    ranked = list(found.chunks)
    if by_model:
        ranked.sort(key=lambda chunk: _share(chunk, covered) >= _COVERED)
    kept = within(ranked, tokens=max(0, budget - used), least=0)
    shown = tuple(sorted(kept, key=lambda chunk: (chunk.title, chunk.document, chunk.position)))
    uids = {chunk.uid for chunk in shown}
    table.sort(key=lambda row: (row.days, str(row.properties["said_at"])))
    known = frozenset(row.uid for row in table)
    lines = [
        (text_of(row, standing.get(row.uid), known), row.chunks) for row in table if not uids.isdisjoint(row.chunks)
    ]
    apart = [row for row in (*sorted(told, key=_ended), *table) if uids.isdisjoint(row.chunks) or row.kind != "Fact"]
    return Shown(
        chunks=shown,
        built=passages(services, apart, standing, known=known),
        statements=tuple(statements(lines, shown)),
    )


def _ended(row: Recalled) -> str:
    return str(row.properties["ends"])


def _tells(fact: Recalled, standing: Mapping[str, Standing]) -> bool:
    """Return whether a fact tells more than its message: a day, or how it stands."""
    how = standing.get(fact.uid)
    return bool(fact.properties["starts"] or (how and how.notes()))


def _fitting(rows: Sequence[Recalled], standing: Mapping[str, Standing], *, tokens: int) -> Iterator[Recalled]:
    for row in rows:
        tokens -= _cost(row, standing)
        if tokens < 0:
            return
        yield row


def _cost(row: Recalled, standing: Mapping[str, Standing]) -> int:
    return count(text_of(row, standing.get(row.uid))) + _BESIDE


def _share(chunk: Chunk, covered: set[tuple[str, str]]) -> float:
    """Return the share of a chunk's messages that told facts cover."""
    ids = [(chunk.document, place.id) for place in chunk.messages]
    return sum(one in covered for one in ids) / max(1, len(ids))


def text_of(row: Recalled, how: Standing | None = None, told: frozenset[str] = frozenset()) -> str:
    """Return a fact with its time, place and standing, or the narrative of an episode with its day."""
    values = row.properties
    if row.kind == "Episode":
        day = str(values["ends"])[:10]
        return f"{values['subject']}{f' ({day})' if day else ''}: {values['narrative']}"
    day = str(values["said_at"])[:10]
    parts = [values["event_time"], values["place"], f"said {day}" if day else "", *(how.notes(told) if how else ())]
    told_too = [part for part in parts if part]
    return f"{values['content']} ({'; '.join(told_too)})" if told_too else str(values["content"])


def passages(
    services: Services,
    rows: Sequence[Recalled],
    standing: Mapping[str, Standing] | None = None,
    *,
    known: frozenset[str] = frozenset(),
) -> tuple[BuiltPassage, ...]:
    """Return facts and episodes as passages that an answer may cite, without the texts of facts that are `known`."""
    found = origins(services, {row.uid: row.chunks for row in rows})
    return tuple(
        BuiltPassage(
            uid=row.uid,
            kind=row.kind,
            text=text_of(row, (standing or {}).get(row.uid), known),
            title=str(row.properties["subject"]) if row.kind == "Episode" else "",
            origin=found.get(row.uid, ""),
            document=str(row.properties["document"]),
            chunks=row.chunks,
        )
        for row in rows
    )
