"""Folding contributions into entities and relations: lock, read what contributes, write the fields, embed.

Each transaction locks what it touches before it reads, so two writers of one entity never lose each other's part.
Vectors are made outside of it and written only where the text is still the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from hgmem.contributions import (
    Contribution,
    EntityContribution,
    EntityFields,
    RelationContribution,
    RelationFields,
    dump,
    entities_of,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
    relations_of,
)
from hgmem.corpus.holding import embedding
from hgmem.corpus.said import entities_said, relations_said
from hgmem.extract import Extraction
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
from hgmem.identity import uid
from hgmem.services import Services

BATCH = 500
SEGMENT = 1_000  # chunks, or an import's entities, a transaction: it makes a segment of their index, a search reads all
Report: TypeAlias = Callable[[int, int], None]
C = TypeVar("C", EntityContribution, RelationContribution)
F = TypeVar("F", EntityFields, RelationFields)
T = TypeVar("T")


def fold(
    services: Services,
    *,
    extractions: Mapping[str, Extraction],
    report: Report = lambda _, __: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Fold what chunks (by uid) contribute into the corpus's graph; `report` hears how many are done, of how many.

    `meanwhile` is called between the transactions.
    """
    entities, relations = rows_of(services.corpus, extractions)
    for touched in batches(entities):
        services.database.write(_fold_entities, services, touched)
        meanwhile()
    for joined in batches(relations):
        services.database.write(_fold_relations, services, joined)
        meanwhile()

    def embedded(done: int, total: int) -> None:
        report(done, total)
        meanwhile()

    uids = {"entities": [row.uid for row in entities], "relations": [row.uid for row in relations]}
    embed_missing(services, **uids, report=embedded)


def rows_of(corpus: str, extractions: Mapping[str, Extraction]) -> tuple[list[EntityRow], list[RelationRow]]:
    """Return the entities and relations that chunks contribute to, by uid."""
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
class Brought(Generic[C]):
    """What comes ready-made, by uid: contributions, and vectors, each with the text that it stands for."""

    given: Mapping[str, Sequence[C]] = field(default_factory=dict)
    vectors: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    def standing(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the vectors of those things (texts by uid) whose text is the one that was embedded."""
        known = self.vectors
        return {uid: known[uid][1] for uid, text in texts.items() if uid in known and known[uid][0] == text}


NO_ENTITIES: Brought[EntityContribution] = Brought()
NO_RELATIONS: Brought[RelationContribution] = Brought()


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
    brought: Brought[EntityContribution] = NO_ENTITIES,
) -> list[str]:
    """Write the fields of entities that this transaction holds; those without contributions go.

    `condensed` (JSON by uid) is what a model made of descriptions, if they are still the same. Return the uids of those
    that got no vector of `brought`.
    """
    rows, gone = [], []
    for said in entities_said(transaction, services, inputs, brought=brought.given):
        entity = said.inputs
        if said.contributions:
            fields = entity_fields(
                said.contributions,
                limit=services.settings.description_characters,
                condensed=condensed.get(entity.uid, entity.condensed),
            )
            given, marked = _dumped(said.given), _marked(services, fields)
            rows.append(entity_row(services.corpus, entity.key, said.chunks, given=given, fields=marked))
        else:
            gone.append(entity.uid)
    if gone:  # an end of a relation that others support stays, but nothing is said of it any more
        rows += joined_entities(transaction, corpus=services.corpus, uids=gone)
        remove_entities(transaction, corpus=services.corpus, uids=sorted(set(gone) - {row.uid for row in rows}))
    texts = {row.uid: entity_text(row.fields.name, row.fields.description.text) for row in rows if row.fields}
    vectors = brought.standing(texts)
    write_entities(transaction, corpus=services.corpus, rows=rows, vectors=vectors)
    return [row.uid for row in rows if row.uid not in vectors]


def rebuild_relations(
    transaction: Transaction,
    services: Services,
    inputs: Sequence[RelationInputs],
    *,
    condensed: Mapping[str, str] = NOTHING,
    brought: Brought[RelationContribution] = NO_RELATIONS,
) -> list[str]:
    """Write the fields of relations whose ends this transaction holds, as `rebuild_entities` does."""
    rows, gone = [], []
    texts: dict[str, str] = {}
    for said in relations_said(transaction, services, inputs, brought=brought.given):
        relation, ends = said.inputs, (said.inputs.source, said.inputs.target)
        if said.contributions:
            fields = relation_fields(
                said.contributions,
                limit=services.settings.description_characters,
                condensed=condensed.get(relation.uid, relation.condensed),
            )
            given, marked = _dumped(said.given), _marked(services, fields)
            row = relation_row(services.corpus, ends, said.chunks, given=given, fields=marked)
            rows.append(row)
            texts[row.uid] = relation_text(ends, fields.description.text, fields.keywords)
        else:
            gone.append(relation.uid)
    vectors = brought.standing(texts)
    write_relations(transaction, corpus=services.corpus, rows=rows, vectors=vectors)
    if gone:
        remove_relations(transaction, corpus=services.corpus, uids=gone)
    return [row.uid for row in rows if row.uid not in vectors]


def embed_missing(
    services: Services, *, entities: Sequence[str], relations: Sequence[str], report: Report = lambda _, __: None
) -> None:
    """Give a vector to those of the entities and relations (uids) that lack one."""
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


def embed_rest(services: Services) -> None:
    """Give a vector to whatever lacks one: a run that was killed may have left it so."""
    entities, relations = unembedded(services.database, corpus=services.corpus)
    embed_missing(services, entities=entities, relations=relations)


def batches(items: Iterable[T], *, size: int = BATCH) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _fold_entities(transaction: Transaction, services: Services, rows: Sequence[EntityRow]) -> None:
    rebuild_entities(transaction, services, touch_entities(transaction, corpus=services.corpus, rows=rows))


def _fold_relations(transaction: Transaction, services: Services, rows: Sequence[RelationRow]) -> None:
    rebuild_relations(transaction, services, touch_relations(transaction, corpus=services.corpus, rows=rows))


def _marked(services: Services, fields: F) -> F:
    """Return the fields; that something is left out matters where descriptions are to be condensed."""
    wanted = fields.description.cut and services.settings.condense
    return replace(fields, description=replace(fields.description, cut=wanted))


def _dumped(given: Sequence[Contribution]) -> str | None:
    return dump(given) if given else None
