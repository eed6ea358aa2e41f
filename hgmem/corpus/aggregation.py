"""Aggregate contributions into entities and relations, and embed the results.

Each transaction locks what it changes before reading it, so concurrent writers of one entity never lose updates.
Vectors are computed outside the transaction and written only if the text has not changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from hgmem.corpus.guarded_writes import embedding
from hgmem.corpus.stored_contributions import combine_entity_contributions, combine_relation_contributions
from hgmem.extraction.contributions import (
    Contribution,
    EntityContribution,
    RelationContribution,
    dump,
    entities_of,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
    relations_of,
)
from hgmem.extraction.replies import Extraction
from hgmem.graph.built import drop_learnt
from hgmem.graph.database import Transaction
from hgmem.graph.entities import (
    EntityInputs,
    EntityRow,
    RelationInputs,
    RelationRow,
    joined_entities,
    missing_entity_vectors,
    missing_relation_vectors,
    put_entity_vectors,
    put_relation_vectors,
    remove_entities,
    remove_relations,
    touch_entities,
    touch_relations,
    unembedded,
    write_entities,
    write_relations,
)
from hgmem.graph.values import NOTHING
from hgmem.services import Services
from hgmem.text.identity import uid
from hgmem.values.graph_elements import EntityFields, RelationFields

BATCH = 500
# Chunks or imported entities per transaction: each transaction adds an index segment, and searches read them all.
SEGMENT = 1_000
Report: TypeAlias = Callable[[int, int], None]
C = TypeVar("C", EntityContribution, RelationContribution)
F = TypeVar("F", EntityFields, RelationFields)
T = TypeVar("T")


def aggregate(
    services: Services,
    *,
    extractions: Mapping[str, Extraction],
    report: Report = lambda _, __: None,
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

    uids = {"entities": [row.uid for row in entities], "relations": [row.uid for row in relations]}
    embed_missing(services, **uids, report=embedded)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prebuilt(Generic[C]):
    """Pre-built contributions and vectors by uid, each vector with the text it embeds."""

    given: Mapping[str, Sequence[C]] = field(default_factory=dict)
    vectors: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    def matching(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the vectors whose embedded text equals the given text (both by uid)."""
        known = self.vectors
        return {uid: known[uid][1] for uid, text in texts.items() if uid in known and known[uid][0] == text}


NO_ENTITIES: Prebuilt[EntityContribution] = Prebuilt()
NO_RELATIONS: Prebuilt[RelationContribution] = Prebuilt()


def entity_row(
    corpus: str, key: str, chunks: Iterable[str], *, given: str | None = None, fields: EntityFields | None = None
) -> EntityRow:
    """Return the row of the entity with this key."""
    return EntityRow(uid=uid(corpus, "entity", key), key=key, chunks=tuple(chunks), given=given, fields=fields)


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
        uid=uid(corpus, "relation", *ends),
        source=uid(corpus, "entity", ends[0]),
        target=uid(corpus, "entity", ends[1]),
        chunks=tuple(chunks),
        given=given,
        fields=fields,
    )


def rebuild_entities(
    transaction: Transaction,
    services: Services,
    inputs: Sequence[EntityInputs],
    *,
    condensed: Mapping[str, str] = NOTHING,
    prebuilt: Prebuilt[EntityContribution] = NO_ENTITIES,
) -> list[str]:
    """Write the fields of locked entities, and delete those without contributions.

    `condensed` holds model-written summaries (JSON by uid), used only while the descriptions are unchanged. Returns the
    uids of entities that still need a vector.
    """
    rows, gone = [], []
    for entry in combine_entity_contributions(transaction, services, inputs, prebuilt=prebuilt.given):
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
        remove_entities(transaction, corpus=services.corpus, uids=removed)
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
    prebuilt: Prebuilt[RelationContribution] = NO_RELATIONS,
) -> list[str]:
    """Write the fields of relations between locked entities, as `rebuild_entities` does."""
    rows, gone = [], []
    texts: dict[str, str] = {}
    for entry in combine_relation_contributions(transaction, services, inputs, prebuilt=prebuilt.given):
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
        remove_relations(transaction, corpus=services.corpus, uids=gone)
    return [row.uid for row in rows if row.uid not in vectors]


def embed_missing(
    services: Services, *, entities: Sequence[str], relations: Sequence[str], report: Report = lambda _, __: None
) -> None:
    """Embed those of the entities and relations (uids) that lack a vector."""
    done, total = 0, len(entities) + len(relations)
    for uids in batches(entities):
        _embed_entities(services, uids)
        report(done := done + len(uids), total)
    for uids in batches(relations):
        _embed_relations(services, uids)
        report(done := done + len(uids), total)


def _embed_entities(services: Services, uids: Sequence[str]) -> None:
    rows = missing_entity_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([entity_text(row["name"], row["description"]) for row in rows], kind="document")
        put_entity_vectors(embedding(services), corpus=services.corpus, rows=rows, vectors=vectors)


def _embed_relations(services: Services, uids: Sequence[str]) -> None:
    rows = missing_relation_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        texts = [relation_text((row["source"], row["target"]), row["description"], row["keywords"]) for row in rows]
        vectors = services.embed(texts, kind="document")
        put_relation_vectors(embedding(services), corpus=services.corpus, rows=rows, vectors=vectors)


def embed_unembedded(services: Services) -> None:
    """Embed every entity and relation without a vector, such as after a killed run."""
    entities, relations = unembedded(services.database, corpus=services.corpus)
    embed_missing(services, entities=entities, relations=relations)


def batches(items: Iterable[T], *, size: int = BATCH) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _aggregate_entities(transaction: Transaction, services: Services, rows: Sequence[EntityRow]) -> None:
    rebuild_entities(transaction, services, touch_entities(transaction, corpus=services.corpus, rows=rows))


def _aggregate_relations(transaction: Transaction, services: Services, rows: Sequence[RelationRow]) -> None:
    rebuild_relations(transaction, services, touch_relations(transaction, corpus=services.corpus, rows=rows))


def _fields_to_store(services: Services, fields: F) -> F:
    """Return the fields, marked as truncated only if summarizing is enabled."""
    wanted = fields.description.cut and services.settings.condense
    return replace(fields, description=replace(fields.description, cut=wanted))


def _dumped(given: Sequence[Contribution]) -> str | None:
    return dump(given) if given else None
