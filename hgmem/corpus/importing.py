"""Import a pre-built graph into an empty corpus, all of it or nothing.

Readers refuse the corpus until the import is complete.
"""

from collections.abc import Sequence

from hgmem.corpus.adding import Prepared, prepare, properties_of
from hgmem.corpus.aggregation import SEGMENT, Report, batches, entity_row, relation_row
from hgmem.corpus.guarded_writes import IMPORTING, GuardedWriter, importing
from hgmem.errors import UsageError
from hgmem.extraction.contributions import (
    EntityContribution,
    RelationContribution,
    chunks_of,
    dump,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
)
from hgmem.graph.corpus import CorpusRow, count_corpus, find_corpus, release_corpus
from hgmem.graph.documents import create_chunks, create_documents
from hgmem.graph.entities import create_entities, create_relations
from hgmem.graph.values import Runner, to_json
from hgmem.services import Services, readable_corpus
from hgmem.text.identity import text_hash
from hgmem.values.inputs import Given


def import_graph(services: Services, given: Given, *, report: Report = lambda _, __: None) -> bool:
    """Import the graph, and return whether anything was written.

    Importing the same graph again writes nothing. `report` receives the number of written entities and relations, and
    the total; chunks are written before them. Raises `UsageError` if the corpus is not empty.
    """
    if not given.documents and not given.entities:
        raise UsageError("nothing to import: the source has no documents and no entities")
    written = to_json(given)
    fingerprint = text_hash(written)
    prepared = prepare(given, corpus=services.corpus, written=written)
    row = find_corpus(services.database, corpus=services.corpus)
    if row is not None and row.status != IMPORTING:
        readable_corpus(services)
        if row.imported == fingerprint:
            return False
        refuse_contents(services, row, remedy="import into a new corpus, or delete this one first")
    embedder = (services.embedder.name, services.embedder.dimensions)

    def finish(database: Runner, run: str) -> None:
        release_corpus(database, corpus=services.corpus, run=run, status="ready", imported=fingerprint)

    with importing(services, embedder=embedder, finish=finish) as writer:
        _write(services, writer, prepared, report=report)
    return True


def refuse_contents(services: Services, row: CorpusRow, *, remedy: str) -> None:
    """Raise `UsageError` if the corpus is not empty."""
    counts = count_corpus(services.database, corpus=row)
    if counts.documents or counts.entities or counts.memories:
        raise UsageError(
            f"corpus {row.corpus!r} holds {counts.documents} documents, {counts.entities} entities and "
            f"{counts.memories} memories: {remedy}"
        )


def _write(services: Services, writer: GuardedWriter, prepared: Prepared, *, report: Report) -> None:
    done, total = 0, len(prepared.entities) + len(prepared.relations)
    report(done, total)
    _create_documents(services, writer, prepared)
    for entities in batches(prepared.entities.items(), size=SEGMENT):
        _create_entities(services, writer, entities)
        report(done := done + len(entities), total)
    for relations in batches(prepared.relations.items()):
        _create_relations(services, writer, relations)
        report(done := done + len(relations), total)


def _create_documents(services: Services, writer: GuardedWriter, prepared: Prepared) -> None:
    corpus = services.corpus
    for documents in batches(prepared.documents.items()):
        create_documents(writer, corpus=corpus, documents={uid: properties_of(one) for uid, one in documents})
    ordered = (
        (chunk, before)
        for document_chunks in prepared.chunks.values()
        for chunk, before in zip(document_chunks, (None, *(chunk.uid for chunk in document_chunks)), strict=False)
    )
    for chunks in batches(ordered, size=SEGMENT):
        vectors = services.embed([chunk.text for chunk, _ in chunks], kind="document")
        create_chunks(writer, corpus=corpus, chunks=chunks, vectors=vectors)


def _create_entities(
    services: Services, writer: GuardedWriter, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [entity_fields(contributions, limit=limit) for _, contributions in batch]
    rows = [
        entity_row(services.corpus, key, chunks_of(contributions), given=dump(contributions), fields=values)
        for (key, contributions), values in zip(batch, fields, strict=True)
    ]
    vectors = services.embed([entity_text(values.name, values.description.text) for values in fields], kind="document")
    create_entities(writer, corpus=services.corpus, rows=rows, vectors=vectors)


def _create_relations(
    services: Services, writer: GuardedWriter, batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [relation_fields(contributions, limit=limit) for _, contributions in batch]
    rows = [
        relation_row(services.corpus, ends, chunks_of(contributions), given=dump(contributions), fields=values)
        for (ends, contributions), values in zip(batch, fields, strict=True)
    ]
    texts = [
        relation_text(ends, values.description.text, values.keywords)
        for (ends, _), values in zip(batch, fields, strict=True)
    ]
    create_relations(writer, corpus=services.corpus, rows=rows, vectors=services.embed(texts, kind="document"))
