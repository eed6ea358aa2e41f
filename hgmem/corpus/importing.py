"""Importing a ready-made graph into an empty corpus: all of it or nothing, and refused by readers until it is whole."""

from collections.abc import Sequence

from hgmem.contributions import (
    EntityContribution,
    RelationContribution,
    chunks_of,
    dump,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
)
from hgmem.corpus.adding import properties_of
from hgmem.corpus.fold import SEGMENT, Report, batches, entity_row, relation_row
from hgmem.corpus.holding import IMPORTING, Checked, importing
from hgmem.errors import UsageError
from hgmem.given import Prepared, prepare
from hgmem.graph.corpus import CorpusRow, count_corpus, find_corpus, release_corpus
from hgmem.graph.documents import create_chunks, create_documents
from hgmem.graph.entities import create_entities, create_relations
from hgmem.graph.values import Runner, to_json
from hgmem.identity import text_hash
from hgmem.inputs import Given
from hgmem.services import Services, readable_corpus


def import_graph(services: Services, given: Given, *, report: Report = lambda _, __: None) -> bool:
    """Return whether anything was written: the same graph again writes nothing.

    `report` hears how many entities and relations are written, of how many; they come after the chunks.
    """
    if not given.documents and not given.entities:
        raise UsageError("there is nothing to import: no documents, no entities")
    written = to_json(given)
    fingerprint = text_hash(written)
    prepared = prepare(given, corpus=services.corpus, written=written)
    row = find_corpus(services.database, corpus=services.corpus)
    if row is not None and row.status != IMPORTING:
        readable_corpus(services)
        if row.imported == fingerprint:
            return False
        refuse_contents(services, row, remedy="import into a new one, or delete it first")
    embedder = (services.embedder.name, services.embedder.dimensions)

    def finish(database: Runner, run: str) -> None:
        release_corpus(database, corpus=services.corpus, run=run, status="ready", imported=fingerprint)

    with importing(services, embedder=embedder, finish=finish) as held:
        _write(services, held, prepared, report=report)
    return True


def refuse_contents(services: Services, row: CorpusRow, *, remedy: str) -> None:
    """Refuse a corpus that is not empty."""
    counts = count_corpus(services.database, corpus=row)
    if counts.documents or counts.entities or counts.memories:
        raise UsageError(
            f"corpus {row.corpus!r} holds {counts.documents} documents, {counts.entities} entities and "
            f"{counts.memories} memories: {remedy}"
        )


def _write(services: Services, held: Checked, prepared: Prepared, *, report: Report) -> None:
    done, total = 0, len(prepared.entities) + len(prepared.relations)
    report(done, total)
    _create_documents(services, held, prepared)
    for entities in batches(prepared.entities.items(), size=SEGMENT):
        _create_entities(services, held, entities)
        report(done := done + len(entities), total)
    for relations in batches(prepared.relations.items()):
        _create_relations(services, held, relations)
        report(done := done + len(relations), total)


def _create_documents(services: Services, held: Checked, prepared: Prepared) -> None:
    corpus = services.corpus
    for documents in batches(prepared.documents.items()):
        create_documents(held, corpus=corpus, documents={uid: properties_of(one) for uid, one in documents})
    ordered = (
        (chunk, before)
        for cut in prepared.chunks.values()
        for chunk, before in zip(cut, (None, *(chunk.uid for chunk in cut)), strict=False)
    )
    for chunks in batches(ordered, size=SEGMENT):
        vectors = services.embed([chunk.text for chunk, _ in chunks], kind="document")
        create_chunks(held, corpus=corpus, chunks=chunks, vectors=vectors)


def _create_entities(
    services: Services, held: Checked, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [entity_fields(said, limit=limit) for _, said in batch]
    rows = [
        entity_row(services.corpus, key, chunks_of(said), given=dump(said), fields=values)
        for (key, said), values in zip(batch, fields, strict=True)
    ]
    vectors = services.embed([entity_text(values.name, values.description.text) for values in fields], kind="document")
    create_entities(held, corpus=services.corpus, rows=rows, vectors=vectors)


def _create_relations(
    services: Services, held: Checked, batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [relation_fields(said, limit=limit) for _, said in batch]
    rows = [
        relation_row(services.corpus, ends, chunks_of(said), given=dump(said), fields=values)
        for (ends, said), values in zip(batch, fields, strict=True)
    ]
    texts = [
        relation_text(ends, values.description.text, values.keywords)
        for (ends, _), values in zip(batch, fields, strict=True)
    ]
    create_relations(held, corpus=services.corpus, rows=rows, vectors=services.embed(texts, kind="document"))
