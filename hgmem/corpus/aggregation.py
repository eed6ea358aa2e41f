"""Aggregate contributions into entities and relations, and embed the results.

Contributions are ordered: pre-built ones first, then extractions. Each transaction locks what it changes before reading
it, so concurrent writers of one entity never lose updates. Vectors are computed outside the transaction and written
only if the text has not changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, TypeVar

from hgmem.corpus.guarded_writes import check_embedder, embedding
from hgmem.corpus.paging import batches
from hgmem.extraction.contributions import (
    Contribution,
    EntityContribution,
    RelationContribution,
    dump,
    entities_of,
    entity_fields,
    entity_text,
    load_entities,
    load_relations,
    relation_fields,
    relation_text,
    relations_of,
    still_supported,
)
from hgmem.extraction.replies import Extraction
from hgmem.graph.built import drop_learnt
from hgmem.graph.database import Transaction
from hgmem.graph.entities import (
    EntityInputs,
    EntityRow,
    RelationInputs,
    RelationRow,
    chunk_extractions,
    entity_contributions,
    entity_uid,
    joined_entities,
    lock_entities,
    missing_entity_vectors,
    put_entity_vectors,
    put_relation_vectors,
    relation_contributions,
    relation_uid,
    touch_entities,
    touch_relations,
    uids_by_kind,
    write_entities,
    write_relations,
)
from hgmem.graph.values import NOTHING, Runner
from hgmem.services import Services
from hgmem.values.graph_elements import EntityFields, EntityUid, RelationFields, RelationUid
from hgmem.values.reports import CountReport

# Chunks or imported entities per transaction: each transaction adds an index segment, and searches read them all.
SEGMENT = 1_000
C = TypeVar("C", EntityContribution, RelationContribution)
F = TypeVar("F", EntityFields, RelationFields)
I = TypeVar("I", EntityInputs, RelationInputs)  # noqa: E741
K = TypeVar("K")
U = TypeVar("U", EntityUid, RelationUid)


def aggregate(
    services: Services,
    *,
    extractions: Mapping[str, Extraction],
    report: CountReport = lambda _, __: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Aggregate the extractions of chunks (by uid) into the corpus's graph.

    `report` receives the number of embedded entities and relations, and the total. `meanwhile` is called between
    transactions.
    """
    entities, relations = rows_of(services.corpus, extractions)
    for touched in batches(entities):
        services.database.write(_aggregate_entities, services, touched)
        meanwhile()
    for joined in batches(relations):
        services.database.write(_aggregate_relations, services, joined)
        meanwhile()

    def embedded(done: int, total: int) -> None:
        report(done, total)
        meanwhile()

    embed_missing(
        services,
        entities=[row.uid for row in entities],
        relations=[row.uid for row in relations],
        report=embedded,
    )


def rows_of(corpus: str, extractions: Mapping[str, Extraction]) -> tuple[list[EntityRow], list[RelationRow]]:
    """Return the entities and relations that the chunks contribute to, sorted by uid."""
    entities: dict[str, list[str]] = {}
    relations: dict[tuple[str, str], list[str]] = {}
    for chunk, extraction in extractions.items():
        for key in entities_of(extraction):
            entities.setdefault(key, []).append(chunk)
        for ends in relations_of(extraction):
            relations.setdefault(ends, []).append(chunk)
    return (
        sorted((entity_row(corpus, key, chunks) for key, chunks in entities.items()), key=lambda row: row.uid),
        sorted((relation_row(corpus, ends, chunks) for ends, chunks in relations.items()), key=lambda row: row.uid),
    )


def entity_row(
    corpus: str, key: str, chunks: Iterable[str], *, given: str | None = None, fields: EntityFields | None = None
) -> EntityRow:
    """Return the row of the entity with this key."""
    return EntityRow(uid=entity_uid(corpus, key), key=key, chunks=tuple(chunks), given=given, fields=fields)


def relation_row(
    corpus: str,
    ends: tuple[str, str],
    chunks: Iterable[str],
    *,
    given: str | None = None,
    fields: RelationFields | None = None,
) -> RelationRow:
    """Return the row of the relation between these two keys."""
    return RelationRow(
        uid=relation_uid(corpus, ends),
        source=entity_uid(corpus, ends[0]),
        target=entity_uid(corpus, ends[1]),
        chunks=tuple(chunks),
        given=given,
        fields=fields,
    )


def _aggregate_entities(transaction: Transaction, services: Services, rows: Sequence[EntityRow]) -> None:
    rebuild_entities(transaction, services, touch_entities(transaction, corpus=services.corpus, rows=rows))


def _aggregate_relations(transaction: Transaction, services: Services, rows: Sequence[RelationRow]) -> None:
    rebuild_relations(transaction, services, touch_relations(transaction, corpus=services.corpus, rows=rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions(Generic[I, C]):
    """All contributions to an entity or a relation.

    `chunks` are those that still exist; `given` are the pre-built contributions that still count.
    """

    inputs: I
    chunks: tuple[str, ...]
    given: list[C]
    contributions: list[C]


def read_entity_contributions(
    database: Runner, services: Services, uids: Sequence[EntityUid]
) -> list[Contributions[EntityInputs, EntityContribution]]:
    """Return the stored contributions to each of the entities, in aggregation order."""
    return _entity_contributions(database, services, entity_contributions(database, corpus=services.corpus, uids=uids))


def read_relation_contributions(
    database: Runner, services: Services, uids: Sequence[RelationUid]
) -> list[Contributions[RelationInputs, RelationContribution]]:
    """Return the stored contributions to each of the relations, in aggregation order."""
    inputs = relation_contributions(database, corpus=services.corpus, uids=uids)
    return _relation_contributions(database, services, inputs)


def _entity_contributions(
    database: Runner,
    services: Services,
    inputs: Sequence[EntityInputs],
    *,
    prebuilt: Mapping[EntityUid, Sequence[EntityContribution]] = NOTHING,
) -> list[Contributions[EntityInputs, EntityContribution]]:
    """Return the contributions to entities, with `prebuilt` ones (by uid) that are not stored yet."""
    parsed = _parsed(database, services, inputs, entities_of)
    return [
        _combined(
            entity,
            entity.chunks,
            _united(load_entities(entity.given), prebuilt.get(entity.uid, ())),
            (entity.key, parsed),
        )
        for entity in inputs
    ]


def _relation_contributions(
    database: Runner,
    services: Services,
    inputs: Sequence[RelationInputs],
    *,
    prebuilt: Mapping[RelationUid, Sequence[RelationContribution]] = NOTHING,
) -> list[Contributions[RelationInputs, RelationContribution]]:
    """Return the contributions to relations, with `prebuilt` ones (by uid) that are not stored yet."""
    parsed = _parsed(database, services, inputs, relations_of)
    return [
        _combined(
            relation,
            relation.living,
            _united(load_relations(relation.given), prebuilt.get(relation.uid, ())),
            ((relation.source, relation.target), parsed),
        )
        for relation in inputs
    ]


def _combined(
    inputs: I, chunks: Iterable[str], given: Sequence[C], extracted: tuple[K, Mapping[str, Mapping[K, list[C]]]]
) -> Contributions[I, C]:
    key, parsed = extracted
    gone = set(inputs.extracted) - parsed.keys()  # deleted since the chunks were listed
    existing = tuple(chunk for chunk in chunks if chunk not in gone)
    kept = still_supported(given, existing=set(existing))
    found = [contribution for chunk in existing if chunk in parsed for contribution in parsed[chunk].get(key, [])]
    return Contributions(inputs=inputs, chunks=existing, given=kept, contributions=kept + found)


def _united(stored: list[C], prebuilt: Sequence[C]) -> list[C]:
    return list(dict.fromkeys(chain(stored, prebuilt))) if prebuilt else stored


def _parsed(
    database: Runner,
    services: Services,
    inputs: Iterable[EntityInputs | RelationInputs],
    contributions_of: Callable[[Extraction], dict[K, list[C]]],
) -> dict[str, dict[K, list[C]]]:
    """Return the contributions of each chunk's extraction, by chunk.

    Chunks of pre-built graphs have no extraction.
    """
    uids = sorted({chunk for each in inputs for chunk in each.extracted})
    stored = chunk_extractions(database, corpus=services.corpus, uids=uids) if uids else {}
    return {
        chunk: contributions_of(Extraction.model_validate_json(text)) if text else {} for chunk, text in stored.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Prebuilt(Generic[U, C]):
    """Pre-built contributions and vectors by uid, each vector with the text it embeds."""

    given: Mapping[U, Sequence[C]] = field(default_factory=dict)
    vectors: Mapping[U, tuple[str, Any]] = field(default_factory=dict)

    def matching(self, texts: Mapping[U, str]) -> dict[str, Any]:
        """Return the vectors whose embedded text equals the given text (both by uid)."""
        known = self.vectors
        return {uid: known[uid][1] for uid, text in texts.items() if uid in known and known[uid][0] == text}


NO_ENTITIES: Prebuilt[EntityUid, EntityContribution] = Prebuilt()
NO_RELATIONS: Prebuilt[RelationUid, RelationContribution] = Prebuilt()


def rebuild_entities(
    transaction: Transaction,
    services: Services,
    inputs: Sequence[EntityInputs],
    *,
    condensed: Mapping[str, str] = NOTHING,
    prebuilt: Prebuilt[EntityUid, EntityContribution] = NO_ENTITIES,
) -> list[EntityUid]:
    """Write the fields of locked entities, and delete those without contributions.

    `condensed` holds model-written summaries (JSON by uid), used only while the descriptions are unchanged. Returns the
    uids of entities that still need a vector.
    """
    rows, gone = [], []
    for entry in _entity_contributions(transaction, services, inputs, prebuilt=prebuilt.given):
        entity = entry.inputs
        if entry.contributions:
            fields = entity_fields(
                entry.contributions,
                limit=services.settings.description_characters,
                condensed=condensed.get(entity.uid, entity.condensed),
            )
            given, stored_fields = _dumped(entry.given), _fields_to_store(services, fields)
            rows.append(entity_row(services.corpus, entity.key, entry.chunks, given=given, fields=stored_fields))
        else:
            gone.append(entity.uid)
    if gone:  # an entity that a supported relation still joins stays, without a description
        rows += joined_entities(transaction, corpus=services.corpus, uids=gone)
        removed = sorted(set(gone) - {row.uid for row in rows})
        drop_learnt(transaction, corpus=services.corpus, entities=removed)
        transaction.run("remove_entities", corpus=services.corpus, uids=sorted(removed))
    texts = {row.uid: entity_text(row.fields.name, row.fields.description.text) for row in rows if row.fields}
    vectors = prebuilt.matching(texts)
    write_entities(transaction, corpus=services.corpus, rows=rows, vectors=vectors)
    return [row.uid for row in rows if row.uid not in vectors]


def rebuild_relations(
    transaction: Transaction,
    services: Services,
    inputs: Sequence[RelationInputs],
    *,
    condensed: Mapping[str, str] = NOTHING,
    prebuilt: Prebuilt[RelationUid, RelationContribution] = NO_RELATIONS,
) -> list[RelationUid]:
    """Write the fields of relations between locked entities, as `rebuild_entities` does."""
    rows, gone = [], []
    texts: dict[RelationUid, str] = {}
    for entry in _relation_contributions(transaction, services, inputs, prebuilt=prebuilt.given):
        relation, ends = entry.inputs, (entry.inputs.source, entry.inputs.target)
        if entry.contributions:
            fields = relation_fields(
                entry.contributions,
                limit=services.settings.description_characters,
                condensed=condensed.get(relation.uid, relation.condensed),
            )
            given, stored_fields = _dumped(entry.given), _fields_to_store(services, fields)
            row = relation_row(services.corpus, ends, entry.chunks, given=given, fields=stored_fields)
            rows.append(row)
            texts[row.uid] = relation_text(ends, fields.description.text, fields.keywords)
        else:
            gone.append(relation.uid)
    vectors = prebuilt.matching(texts)
    write_relations(transaction, corpus=services.corpus, rows=rows, vectors=vectors)
    if gone:
        transaction.run("remove_relations", corpus=services.corpus, uids=sorted(gone))
    return [row.uid for row in rows if row.uid not in vectors]


def _fields_to_store(services: Services, fields: F) -> F:
    """Return the fields, marked as truncated only if summarizing is enabled."""
    wanted = fields.description.cut and services.settings.condense
    return replace(fields, description=replace(fields.description, cut=wanted))


def _dumped(given: Sequence[Contribution]) -> str | None:
    return dump(given) if given else None


def refresh(services: Services, entities: Iterable[EntityUid], relations: Iterable[RelationUid]) -> None:
    """Recompute relations (uids), then entities, then embed both.

    Relations come first, because an entity stays while a relation joins it.
    """
    entities, relations = sorted(set(entities)), sorted(set(relations))
    for joined in batches(relations):
        services.database.write(_refresh_relations, services, joined)
    for batch in batches(entities):
        services.database.write(_refresh_entities, services, batch)
    embed_missing(services, entities=entities, relations=relations)


def _refresh_relations(transaction: Transaction, services: Services, uids: Sequence[RelationUid]) -> None:
    inputs = relation_contributions(transaction, corpus=services.corpus, uids=uids)
    keys = {key for relation in inputs for key in (relation.source, relation.target)}
    lock_entities(transaction, corpus=services.corpus, uids=[entity_uid(services.corpus, key) for key in keys])
    rebuild_relations(transaction, services, relation_contributions(transaction, corpus=services.corpus, uids=uids))


def _refresh_entities(transaction: Transaction, services: Services, uids: Sequence[EntityUid]) -> None:
    check_embedder(transaction, services)  # an entity that becomes provisional keeps its vector
    lock_entities(transaction, corpus=services.corpus, uids=uids)
    rebuild_entities(transaction, services, entity_contributions(transaction, corpus=services.corpus, uids=uids))


def finish_interrupted(services: Services) -> None:
    """Recompute and embed whatever an interrupted run left unfinished."""
    refresh(services, *uids_by_kind(services.database, "stale", corpus=services.corpus))
    embed_unembedded(services)


def embed_unembedded(services: Services) -> None:
    """Embed every entity and relation without a vector, such as after a killed run."""
    entities, relations = uids_by_kind(services.database, "unembedded", corpus=services.corpus)
    embed_missing(services, entities=entities, relations=relations)


def embed_missing(
    services: Services,
    *,
    entities: Sequence[EntityUid],
    relations: Sequence[RelationUid],
    report: CountReport = lambda _, __: None,
) -> None:
    """Embed those of the entities and relations (uids) that lack a vector."""
    done, total = 0, len(entities) + len(relations)
    for batch in batches(entities):
        embed_entities(services, embedding(services), batch)
        report(done := done + len(batch), total)
    for joined in batches(relations):
        embed_relations(services, embedding(services), joined)
        report(done := done + len(joined), total)


def embed_entities(services: Services, writer: Runner, uids: Sequence[EntityUid]) -> int:
    """Embed those of the entities that lack a vector, and return how many."""
    rows = missing_entity_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([entity_text(row["name"], row["description"]) for row in rows], kind="document")
        put_entity_vectors(writer, corpus=services.corpus, rows=rows, vectors=vectors)
    return len(rows)


def embed_relations(services: Services, writer: Runner, uids: Sequence[RelationUid]) -> int:
    """Embed those of the corpus's relations that lack a vector, and return how many."""
    rows = services.database.run("missing_relation_vectors", corpus=services.corpus, uids=uids)
    if rows:
        texts = [relation_text((row["source"], row["target"]), row["description"], row["keywords"]) for row in rows]
        vectors = services.embed(texts, kind="document")
        put_relation_vectors(writer, corpus=services.corpus, rows=rows, vectors=vectors)
    return len(rows)
