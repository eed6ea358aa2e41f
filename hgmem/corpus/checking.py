"""Check a corpus for violated invariants without writing anything.

Unfinished work is reported as a note. Concurrent writes can cause false findings, so check again. Contributions are
aggregated again and compared with the stored fields. Each vector index is asked for exactly the uids of a page, so a
uid that it does not return is not indexed. Nothing is sampled.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hgmem.corpus.aggregation import (
    ENTITY,
    RELATION,
    Contributions,
    Kind,
    entity_uid,
    joined_entities,
    read_contributions,
    relation_uid,
)
from hgmem.corpus.findings import MOST, Tally
from hgmem.corpus.paging import BUILT, CHUNKS, EVERY_ENTITY, EVERY_RELATION, UNITS, pages
from hgmem.extraction.contributions import (
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
from hgmem.graph.database import Database, Row
from hgmem.graph.invariants import OwnInvariant
from hgmem.graph.resolution import wrong_classes
from hgmem.graph.schema import TYPES, differing, missing, show_indexes
from hgmem.graph.values import NOTHING, by_uid, loaded_messages, uids_of, vector
from hgmem.services import Services, settled_corpus
from hgmem.text.identity import build_uid, built_uid, chunk_layer, layer_key, unit_uid
from hgmem.text.stems import stored_stems
from hgmem.values.records import PRUNING
from hgmem.values.reports import Checkup

BATCH = 500  # rows checked together
MEMORIES = 200  # memories checked together
RETURNED = 10_000  # nodes that a search of a vector index returns at most
REPORT = "report this to the system's authors"
VECTORED = ("done", "extracted", "embedded")  # statuses of chunks that have a vector
# Statements that read violations, and take nothing but the corpus.
BROKEN = ("broken_documents", "broken_support", "crossings", "leaks", "orphans", "broken_citations")
# Name of what is aggregated, its pages, and its statements.
AGGREGATED: Mapping[Kind, Any] = {
    ENTITY: ("entity", EVERY_ENTITY, "stored_entities", "indexed_entities"),
    RELATION: ("relation", EVERY_RELATION, "stored_relations", "indexed_relations"),
}


def check(services: Services, *, own: Mapping[str, Sequence[OwnInvariant]] = NOTHING) -> Checkup:
    """Return every violation in the corpus. `own` are invariants of installed systems by name.

    If the schema is invalid, nothing else is checked. Raises `UsageError` if the corpus is not ready.
    """
    tally = Tally()
    tally.add("schema", _schema(services.database))
    if not tally.checkup(services.corpus).ok:  # statements name their indexes and fail without them
        return tally.checkup(services.corpus)
    row = settled_corpus(services)
    database, corpus, zero = services.database, services.corpus, vector([0.0] * row.dimensions)
    for name in BROKEN:
        tally.take(database.run(name, corpus=corpus, most=MOST))
    tally.take(database.run("broken_builds", corpus=corpus, ours=sorted(TYPES), most=MOST))
    tally.take(database.run("broken_vectors", corpus=corpus, dimensions=row.dimensions, zero=zero, most=MOST))
    tally.add("entity-class", wrong_classes(database, corpus=corpus))
    check_chunks(services, row, tally)
    check_entities(services, row, tally)
    check_relations(services, row, tally)
    check_memories(services, row, tally)
    check_builds(services, row, tally)
    check_own(services, own, tally)
    return tally.checkup(services.corpus)


def _schema(database: Database) -> list[str]:
    indexes = show_indexes(database)
    declared = [*missing(indexes), *differing(indexes)]
    return declared + [name for name, row in indexes.items() if row["state"] != "ONLINE" and name not in declared]


def check_chunks(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally chunks that are not aggregated into the graph, or not in the index."""
    database, corpus = services.database, services.corpus
    for uids in pages(database, CHUNKS, corpus=corpus, size=BATCH):
        stored = by_uid(database, "stored_chunks", corpus=corpus, uids=uids, dimensions=row.dimensions)
        extracted = [uid for uid in uids if uid in stored and stored[uid]["status"] in VECTORED]
        found = _indexed(services, "indexed_chunks", row, extracted)
        tally.add("chunk-not-in-index", [uid for uid in extracted if stored[uid]["embedded"] and uid not in found])
        tally.add("stems", [uid for uid in uids if uid in stored and not _is_searched(row, stored[uid])])
        tally.add("message-place", [uid for uid in uids if uid in stored and not _has_messages(stored[uid])])
        done = [uid for uid in extracted if stored[uid]["status"] == "done" and stored[uid]["extraction"]]
        named = {uid: names for uid in done if (names := _names(corpus, stored[uid]["extraction"]))}
        tally.add("contributions-unreadable", [uid for uid in done if uid not in named])
        given = [{"uid": uid, "entities": ends, "relations": ties} for uid, (ends, ties) in named.items()]
        tally.add("chunk-not-folded", uids_of(database, "unfolded_chunks", corpus=corpus, rows=given))


def _is_searched(row: CorpusRow, chunk: Row) -> bool:
    """Return whether full-text search finds a chunk by the stems of its text, as a chunk of its corpus."""
    stems = stored_stems(chunk["text"], row.language or "")
    return bool(chunk["layer_key"] == chunk_layer(row.corpus) and chunk["stems"] == stems)


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
    limits = _limits(services, row)
    for entries, stored in _aggregated(services, row, ENTITY, tally):
        joined = _joined(services, [one.uid for one in entries if not one.contributions])
        for one in entries:
            own = one.uid == entity_uid(row.corpus, one.key or "")
            if not own or not _is_entity(one, stored[one.uid], limits, joined):
                tally.add("entity-differs", [one.uid])


def check_relations(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally relations that differ from their contributions, or are not in the index."""
    limits = _limits(services, row)
    for entries, stored in _aggregated(services, row, RELATION, tally):
        odd = [one.uid for one in entries if not _is_relation(one, stored[one.uid], limits)]
        tally.add("relation-differs", odd)


def _aggregated(
    services: Services, row: CorpusRow, kind: Kind, tally: Tally
) -> Iterator[tuple[list[Contributions], dict[str, Row]]]:
    """Yield the contributions to entities or relations and what is stored of these, page by page.

    Those of a memory have no contributions. What the index lacks is tallied.
    """
    name, listed, stored_by, indexed_by = AGGREGATED[kind]
    database, corpus = services.database, services.corpus
    for uids in pages(database, listed, corpus=corpus, size=BATCH):
        stored = by_uid(database, stored_by, corpus=corpus, uids=uids, dimensions=row.dimensions)
        found = _indexed(services, indexed_by, row, uids)
        embedded = [uid for uid in uids if uid in stored and stored[uid]["embedded"]]
        tally.add(f"{name}-not-in-index", [uid for uid in embedded if uid not in found])
        yield _readable(services, kind, [uid for uid in stored if not stored[uid]["memory"]], tally), stored


def _indexed(services: Services, name: str, row: CorpusRow, uids: Sequence[str]) -> set[str]:
    """Return those of the uids that a vector index returns."""
    axis = _axis(row.dimensions)
    return set(uids_of(services.database, name, corpus=services.corpus, uids=uids, vector=axis, most=len(uids)))


def _axis(dimensions: int) -> Any:
    """Return the first axis: any unit vector will do for a query that returns everything."""
    return vector([1.0] + [0.0] * (dimensions - 1))


def _limits(services: Services, row: CorpusRow) -> set[int]:
    """Return the description limits that may have applied: the corpus's first and the current one."""
    first = json.loads(row.settings or "{}").get("description_characters")
    now = services.settings.description_characters
    return {now, first or now}


def _readable(services: Services, kind: Kind, uids: Sequence[str], tally: Tally) -> list[Contributions]:
    """Return the contributions, without those that can't be parsed, which are tallied."""
    try:
        return read_contributions(services.database, services, uids, kind=kind)
    except (ValueError, TypeError, KeyError):
        if len(uids) == 1:
            tally.add("contributions-unreadable", uids)
            return []
        return [entry for one in uids for entry in _readable(services, kind, [one], tally)]


def _joined(services: Services, uids: Sequence[Any]) -> set[str]:
    """Return those of the entities without a description that a relation joins."""
    rows = joined_entities(services.database, corpus=services.corpus, uids=uids) if uids else []
    return {row["uid"] for row in rows}


def _is_entity(entry: Contributions, row: Row, limits: Iterable[int], joined: Container[str]) -> bool:
    condensed = entry.stored["condensed"]
    if load_entities(entry.stored["given"]) != entry.given:
        return False
    if not entry.contributions:  # an entity that nothing supports violates another invariant
        return not entry.chunks and not (entry.uid in joined and (row["description"] or condensed))
    wanted = (row["name"], row["type"], row["description"], condensed)
    found = (entity_fields(entry.contributions, limit=limit, condensed=condensed) for limit in limits)
    return any((one.name, one.type, one.description.text, one.description.condensed) == wanted for one in found)


def _is_relation(entry: Contributions, row: Row, limits: Iterable[int]) -> bool:
    condensed, named = entry.stored["condensed"], entry.stored["chunks"]
    existing = [chunk for chunk in named if chunk in entry.chunks]  # a missing chunk violates another invariant
    if (
        load_relations(entry.stored["given"]) != entry.given
        or existing != list(entry.chunks)
        or not entry.contributions
    ):
        return False
    wanted = (tuple(row["keywords"] or ()), row["weight"], row["description"], condensed)
    found = (relation_fields(entry.contributions, limit=limit, condensed=condensed) for limit in limits)
    return any((one.keywords, one.weight, one.description.text, one.description.condensed) == wanted for one in found)


def _names(corpus: str, text: str) -> tuple[list[str], list[str]] | None:
    """Return the uids of an extraction's entities and relations, or None if it can't be parsed."""
    try:
        extraction = Extraction.model_validate_json(text)
    except ValueError:
        return None
    entities = [str(entity_uid(corpus, name)) for name in entities_of(extraction)]
    return entities, [relation_uid(corpus, ends) for ends in relations_of(extraction)]


def check_builds(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally builds, units and rows whose uid is another, and rows that the index does not find."""
    database, corpus = services.database, services.corpus
    builds = [build for build, _, _ in find_builds(database, corpus=corpus)]
    tally.add("built-identity", [one.uid for one in builds if one.uid != build_uid(corpus, one.system)])
    for uids in pages(database, UNITS, corpus=corpus, size=BATCH):
        units = by_uid(database, "stored_units", corpus=corpus, uids=uids)
        tally.add("built-identity", [uid for uid, unit in units.items() if not _is_unit(corpus, unit)])
    for uids in pages(database, BUILT, corpus=corpus, size=BATCH):
        rows = by_uid(database, "stored_built", corpus=corpus, uids=uids, dimensions=row.dimensions)
        tally.add("built-identity", [uid for uid, each in rows.items() if not _is_row(row, each)])
        found = _indexed(services, "indexed_built", row, uids)
        tally.add("built-not-in-index", [uid for uid, each in rows.items() if each["embedded"] and uid not in found])


def check_own(services: Services, own: Mapping[str, Sequence[OwnInvariant]], tally: Tally) -> None:
    """Tally what violates the systems' own invariants. One that raises is a note, and the others are checked."""
    for system, invariants in own.items():
        for invariant in invariants:
            _check_one(services, system, invariant, tally)


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


def _is_row(corpus: CorpusRow, row: Row) -> bool:
    system, kind, name = row["system"], row["kind"], corpus.corpus
    return (
        row["uid"] == built_uid(name, system, kind=kind, key=row["key"])
        and row["layer_key"] == layer_key(name, system, kind)
        and {"Built", kind} <= set(row["labels"])
        and (row["learnt"] or row["stems"] == stored_stems(row["text"], corpus.language or ""))
    )


def check_memories(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally violations in memories, page by page."""
    database, timeout = services.database, services.settings.claim_timeout
    for page in _pages(services):
        tally.add("stale-claim", [one["uid"] for one in page if one["held"] and (one["silent"] or 0) > timeout])
        tally.add("unfinished-prune", [one["uid"] for one in page if one["status"] == PRUNING])
        whole = [one for one in page if one["status"] != PRUNING]
        uids, adding = [one["uid"] for one in whole], [one["uid"] for one in whole if _adds(one)]
        tally.take(database.run("broken_memories", corpus=row.corpus, memories=uids, adding=adding, most=MOST))
        tally.add("point-not-in-index", _unindexed(services, row, uids))


def _pages(services: Services) -> Iterator[list[Row]]:
    """Yield memories by uid: whether a run holds each, and for how many seconds it has been silent."""
    after = ""
    while page := services.database.run("memory_page", corpus=services.corpus, after=after, most=MEMORIES):
        yield page
        after = page[-1]["uid"]


def _adds(memory: Row) -> bool:
    """Return whether merging keeps the parts, which is fixed for the memory's lifetime."""
    return bool(json.loads(memory["settings"] or "{}").get("merge") == "add")


def _unindexed(services: Services, row: CorpusRow, memories: Sequence[str]) -> list[str]:
    database, corpus = services.database, services.corpus
    wanted = uids_of(database, "stored_points", corpus=corpus, memories=memories, dimensions=row.dimensions)
    if not wanted:
        return []
    half = len(memories) // 2
    if half and 2 * len(wanted) > RETURNED:
        return [*_unindexed(services, row, memories[:half]), *_unindexed(services, row, memories[half:])]
    axis, most = _axis(row.dimensions), 2 * len(wanted)  # leaves room for points that are written meanwhile
    found = set(uids_of(database, "indexed_points", corpus=corpus, memories=memories, vector=axis, most=most))
    return [uid for uid in wanted if uid not in found]
