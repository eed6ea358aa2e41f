"""Check what a corpus holds: chunks, entities, relations, builds, systems' own invariants and memories.

Contributions are aggregated again and compared with the stored fields. Each vector index is asked for exactly the uids
of a page, so a uid that it does not return is not indexed. Nothing is sampled.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from hgmem.corpus.aggregation import Contributions, read_entity_contributions, read_relation_contributions
from hgmem.corpus.checking.findings import Tally
from hgmem.corpus.paging import CHUNKS, EVERY_ENTITY, EVERY_RELATION, UNITS, pages
from hgmem.extraction.contributions import (
    EntityContribution,
    RelationContribution,
    entities_of,
    entity_fields,
    load_entities,
    load_relations,
    relation_fields,
    relations_of,
)
from hgmem.extraction.replies import Extraction
from hgmem.graph.builds import find_builds
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.database import Row
from hgmem.graph.documents import loaded_messages
from hgmem.graph.entities import EntityInputs, RelationInputs, joined_entities
from hgmem.graph.exporting import built_uids
from hgmem.graph.invariants import (
    MemoryRow,
    OwnInvariant,
    OwnInvariants,
    indexed,
    memory_page,
    unfolded_chunks,
    violations,
)
from hgmem.graph.values import Runner, by_uid, uids_of
from hgmem.services import Services
from hgmem.text.identity import build_uid, built_uid, layer_key, uid, unit_uid
from hgmem.values.graph_elements import EntityUid
from hgmem.values.records import PRUNING

T = TypeVar("T")

BATCH = 500  # rows checked together
REPORT = "report this to the system's authors"
VECTORED = ("done", "extracted", "embedded")  # statuses of chunks that have a vector


def check_chunks(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally chunks that are not aggregated into the graph, or not in the index."""
    database, corpus = services.database, services.corpus
    for uids in pages(database, CHUNKS, corpus=corpus, size=BATCH):
        stored = by_uid(database, "stored_chunks", corpus=corpus, uids=uids, dimensions=row.dimensions)
        extracted = [uid for uid in uids if uid in stored and stored[uid]["status"] in VECTORED]
        found = _indexed(services, "indexed_chunks", row, extracted)
        tally.add("chunk-not-in-index", [uid for uid in extracted if stored[uid]["embedded"] and uid not in found])
        tally.add("message-place", [uid for uid in uids if uid in stored and not _has_messages(stored[uid])])
        done = [uid for uid in extracted if stored[uid]["status"] == "done" and stored[uid]["extraction"]]
        named = {uid: names for uid in done if (names := _names(corpus, stored[uid]["extraction"]))}
        tally.add("contributions-unreadable", [uid for uid in done if uid not in named])
        tally.add("chunk-not-folded", unfolded_chunks(database, corpus=corpus, named=named))


def _has_messages(row: Row) -> bool:
    """Return whether the messages of a chunk stand in its text, one after the other. Other chunks have none."""
    if row["messages"] is None:
        return True
    try:
        places = loaded_messages(row["messages"])
    except (ValueError, TypeError):
        return False
    borders = [0, *(border for place in places for border in (place.start, place.end)), len(row["text"])]
    return bool(places) and borders == sorted(borders)


def check_entities(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally entities that differ from their contributions, or are not in the index."""
    limits, database, corpus = _limits(services, row), services.database, services.corpus
    for uids in pages(database, EVERY_ENTITY, corpus=corpus, size=BATCH):
        stored = by_uid(database, "stored_entities", corpus=corpus, uids=uids, dimensions=row.dimensions)
        found = _indexed(services, "indexed_entities", row, uids)
        tally.add("entity-not-in-index", [uid for uid in uids if _embedded(stored, uid) and uid not in found])
        entries = _readable(read_entity_contributions, services, _own(stored), tally=tally)
        joined = _joined(services, [one.inputs.uid for one in entries if not one.contributions])
        same = {one.inputs.uid for one in entries if _is_entity(one, stored[one.inputs.uid], limits, joined)}
        own = {one.inputs.uid for one in entries if one.inputs.uid == uid(corpus, "entity", one.inputs.key or "")}
        tally.add("entity-differs", [one.inputs.uid for one in entries if one.inputs.uid not in same & own])


def check_relations(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally relations that differ from their contributions, or are not in the index."""
    limits, database, corpus = _limits(services, row), services.database, services.corpus
    for uids in pages(database, EVERY_RELATION, corpus=corpus, size=BATCH):
        stored = by_uid(database, "stored_relations", corpus=corpus, uids=uids, dimensions=row.dimensions)
        found = _indexed(services, "indexed_relations", row, uids)
        tally.add("relation-not-in-index", [uid for uid in uids if _embedded(stored, uid) and uid not in found])
        entries = _readable(read_relation_contributions, services, _own(stored), tally=tally)
        odd = [one.inputs.uid for one in entries if not _is_relation(one, stored[one.inputs.uid], limits)]
        tally.add("relation-differs", odd)


def _indexed(services: Services, name: str, row: CorpusRow, uids: Sequence[str]) -> set[str]:
    return indexed(
        services.database, name, corpus=services.corpus, uids=uids, dimensions=row.dimensions, most=len(uids)
    )


def _limits(services: Services, row: CorpusRow) -> set[int]:
    """Return the description limits that may have applied: the corpus's first and the current one."""
    first = json.loads(row.settings or "{}").get("description_characters")
    now = services.settings.description_characters
    return {now, first or now}


def _embedded(stored: Mapping[str, Row], uid: str) -> bool:
    return uid in stored and bool(stored[uid]["embedded"])


def _own(stored: Mapping[str, Row]) -> list[str]:
    """Return the uids of the corpus's own entities or relations, which have contributions.

    Those of a memory have none.
    """
    return [uid for uid, row in stored.items() if not row["memory"]]


def _readable(
    reader: Callable[[Runner, Services, Sequence[Any]], list[T]],
    services: Services,
    uids: Sequence[str],
    *,
    tally: Tally,
) -> list[T]:
    """Return the contributions, without those that can't be parsed, which are tallied."""
    try:
        return reader(services.database, services, uids)
    except (ValueError, TypeError, KeyError):
        if len(uids) == 1:
            tally.add("contributions-unreadable", uids)
            return []
        return [entry for one in uids for entry in _readable(reader, services, [one], tally=tally)]


def _joined(services: Services, uids: Sequence[EntityUid]) -> set[str]:
    """Return those of the entities without a description that a relation joins."""
    rows = joined_entities(services.database, corpus=services.corpus, uids=uids) if uids else []
    return {row.uid for row in rows}


def _is_entity(
    entry: Contributions[EntityInputs, EntityContribution], row: Row, limits: Iterable[int], joined: Container[str]
) -> bool:
    inputs = entry.inputs
    if load_entities(inputs.given) != entry.given:
        return False
    if not entry.contributions:  # an entity that nothing supports violates another invariant
        return not entry.chunks and not (inputs.uid in joined and (row["description"] or inputs.condensed))
    wanted = (row["name"], row["type"], row["description"], inputs.condensed)
    found = (entity_fields(entry.contributions, limit=limit, condensed=inputs.condensed) for limit in limits)
    return any((one.name, one.type, one.description.text, one.description.condensed) == wanted for one in found)


def _is_relation(entry: Contributions[RelationInputs, RelationContribution], row: Row, limits: Iterable[int]) -> bool:
    inputs = entry.inputs
    existing = [chunk for chunk in inputs.chunks if chunk in entry.chunks]  # a missing chunk violates another invariant
    if load_relations(inputs.given) != entry.given or existing != list(entry.chunks) or not entry.contributions:
        return False
    wanted = (tuple(row["keywords"] or ()), row["weight"], row["description"], inputs.condensed)
    found = (relation_fields(entry.contributions, limit=limit, condensed=inputs.condensed) for limit in limits)
    return any((one.keywords, one.weight, one.description.text, one.description.condensed) == wanted for one in found)


def _names(corpus: str, text: str) -> tuple[list[str], list[str]] | None:
    """Return the uids of an extraction's entities and relations, or None if it can't be parsed."""
    try:
        extraction = Extraction.model_validate_json(text)
    except ValueError:
        return None
    entities = [uid(corpus, "entity", name) for name in entities_of(extraction)]
    return entities, [uid(corpus, "relation", *ends) for ends in relations_of(extraction)]


def check_builds(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally builds, units and rows whose uid is another, and rows that the index does not find."""
    database, corpus = services.database, services.corpus
    builds = [build for build, _, _ in find_builds(database, corpus=corpus)]
    tally.add("built-identity", [one.uid for one in builds if one.uid != build_uid(corpus, one.system)])
    for uids in pages(database, UNITS, corpus=corpus, size=BATCH):
        units = by_uid(database, "stored_units", corpus=corpus, uids=uids)
        tally.add("built-identity", [uid for uid, unit in units.items() if not _is_unit(corpus, unit)])
    for uids in pages(database, built_uids, corpus=corpus, size=BATCH):
        rows = by_uid(database, "stored_built", corpus=corpus, uids=uids, dimensions=row.dimensions)
        tally.add("built-identity", [uid for uid, each in rows.items() if not _is_row(corpus, each)])
        found = _indexed(services, "indexed_built", row, uids)
        tally.add("built-not-in-index", [uid for uid, each in rows.items() if each["embedded"] and uid not in found])


def check_own(services: Services, own: Sequence[OwnInvariants], tally: Tally) -> None:
    """Tally what violates the systems' own invariants. One that raises is a note, and the others are checked."""
    for each in own:
        for invariant in each.invariants:
            _check_one(services, each.system, invariant, tally)


def _check_one(services: Services, system: str, invariant: OwnInvariant, tally: Tally) -> None:
    name = f"{system}:{invariant.name}"
    remedy = (
        f"delete the build with `hgmem delete --corpus {services.corpus} --system {system}`, and make it again with "
        f"`hgmem build {system} --corpus {services.corpus}`"
    )
    try:
        uids = [str(uid) for uid in invariant.violated(services.database, services.corpus)]
    except Exception as error:  # another package's code
        raised = " ".join(f"{type(error).__name__}: {error}".split())
        tally.add_own(name, [], meaning=f"system {system!r} raised {raised}", remedy=REPORT, failed=True)
        return
    tally.add_own(name, uids, meaning=invariant.meaning, remedy=remedy)


def _is_unit(corpus: str, unit: Row) -> bool:
    return bool(unit["uid"] == unit_uid(corpus, unit["system"], stage=unit["stage"], key=unit["key"]))


def _is_row(corpus: str, row: Row) -> bool:
    system, kind = row["system"], row["kind"]
    return (
        row["uid"] == built_uid(corpus, system, kind=kind, key=row["key"])
        and row["layer_key"] == layer_key(corpus, system, kind)
        and {"Built", kind} <= set(row["labels"])
    )


def check_memories(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally violations in memories, page by page."""
    timeout = services.settings.claim_timeout
    database, corpus = services.database, services.corpus
    for page in _pages(services):
        tally.add("stale-claim", [one.uid for one in page if one.held and (one.silent or 0) > timeout])
        tally.add("unfinished-prune", [one.uid for one in page if one.status == PRUNING])
        whole = [one for one in page if one.status != PRUNING]
        uids, adding = [one.uid for one in whole], [one.uid for one in whole if _adds(one)]
        tally.take(violations(database, "broken_memories", corpus=corpus, memories=uids, adding=adding))
        tally.add("point-not-in-index", _unindexed(services, row, uids))


def _pages(services: Services) -> Iterator[list[MemoryRow]]:
    after = ""
    while page := memory_page(services.database, corpus=services.corpus, after=after):
        yield page
        after = page[-1].uid


def _adds(memory: MemoryRow) -> bool:
    """Return whether merging keeps the parts, which is fixed for the memory's lifetime."""
    return bool(json.loads(memory.settings or "{}").get("merge") == "add")


def _unindexed(services: Services, row: CorpusRow, memories: Sequence[str]) -> list[str]:
    database, corpus = services.database, services.corpus
    wanted = uids_of(database, "stored_points", corpus=corpus, memories=memories, dimensions=row.dimensions)
    if not wanted:
        return []
    most = 2 * len(wanted)  # leaves room for points that are written meanwhile
    found = indexed(database, "indexed_points", corpus=corpus, memories=memories, dimensions=row.dimensions, most=most)
    return [uid for uid in wanted if uid not in found]
