"""Import a graph into an empty corpus, all of it or nothing: one that is given, or one that neo4j-graphrag wrote.

Readers refuse the corpus until the import is complete. A graph of neo4j-graphrag is read in bounded pages and never
written to.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from hgmem.corpus.adding import Prepared, beginning, prepare, properties_of
from hgmem.corpus.aggregation import ENTITY, RELATION, SEGMENT, Kind
from hgmem.corpus.documents import derived
from hgmem.corpus.guarded_writes import GuardedWriter, leased_writer
from hgmem.corpus.paging import batches
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.extraction.contributions import Contribution, chunks_of, dump
from hgmem.graph.corpus import (
    SCHEMA_VERSION,
    CorpusRow,
    count_corpus,
    create_corpus,
    delete_corpus_contents,
    delete_corpus_node,
    find_corpus,
    lease_corpus,
    release_corpus,
    renew_corpus,
    write_leased,
)
from hgmem.graph.database import Database, Row, Transaction
from hgmem.graph.documents import chunk_rows, create_chunks, create_documents
from hgmem.graph.schema import Declared, declared, show_indexes
from hgmem.graph.values import Runner, in_order, rows_with_vectors, to_json
from hgmem.services import Services, known_corpus, readable_corpus, writing_language
from hgmem.sources.graphrag import assembled, name_properties
from hgmem.text.identity import text_hash
from hgmem.text.language import counted
from hgmem.values.foreign_graph import Element, ForeignGraph, Shape
from hgmem.values.inputs import Given
from hgmem.values.reports import AdoptReport, CountReport

IMPORTING = "importing"  # the status of a corpus until its import is complete
IDS, PAGE, RELATIONS = 50_000, 500, 5_000  # maximum rows per statement, of a foreign graph
NAMES = 10  # labels or properties listed in an error

Finish: TypeAlias = Callable[[Runner, str], None]


def import_graph(services: Services, given: Given, *, report: CountReport = lambda _, __: None) -> bool:
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


@contextmanager
def importing(services: Services, *, embedder: tuple[str, int], finish: Finish) -> Iterator[GuardedWriter]:
    """Lease the corpus for the block, and yield a writer for it.

    `finish(database, run)` releases the lease. If the block fails, the corpus is deleted.
    """
    database, corpus, run = services.database, services.corpus, secrets.token_hex(8)
    timeout = services.settings.claim_timeout
    if not database.write(_lease, services, run, embedder):
        raise ConflictError(
            f"corpus {corpus!r} is being imported by another process: wait until it ends; if it "
            f"crashed, retry {timeout:g} s after its last heartbeat"
        )
    try:
        with leased_writer(services, run) as writer:
            delete_corpus_contents(database, corpus=corpus)  # left by a killed import
            yield writer
            finish(database, run)
    except ConflictError:
        raise  # another run has the lease now
    except BaseException:
        with suppress(HGMemError):
            renew_corpus(database, corpus=corpus, run=run)  # raises if another run has the lease: delete nothing then
            delete_corpus_contents(database, corpus=corpus)
            delete_corpus_node(database, corpus=corpus)
        raise


def _lease(transaction: Transaction, services: Services, run: str, embedder: tuple[str, int]) -> bool:
    """Return whether this run has the lease now, and set the corpus's embedder.

    A killed import may have used another embedder.
    """
    corpus, timeout = services.corpus, services.settings.claim_timeout
    create_corpus(transaction, corpus=corpus, status=IMPORTING, embedder=embedder, settings={})
    if not lease_corpus(transaction, corpus=corpus, run=run, status=IMPORTING, timeout=timeout):
        return False
    model, dimensions = embedder
    write_leased(
        transaction,
        "set_embedder",
        corpus=corpus,
        run=run,
        embedding_model=model,
        dimensions=dimensions,
        schema_version=SCHEMA_VERSION,
    )
    return True


def _write(services: Services, writer: GuardedWriter, prepared: Prepared, *, report: CountReport) -> None:
    done, total = 0, len(prepared.entities) + len(prepared.relations)
    report(done, total)
    language = writing_language(services, (chunk.text for chunks in prepared.chunks.values() for chunk in chunks))
    for documents in batches(prepared.documents.items()):
        rows = [
            {"uid": uid, "properties": {**properties_of(document), **derived(document, language=language, text=text)}}
            for uid, document in documents
            for text in (beginning(prepared.chunks.get(uid, ())),)
        ]
        create_documents(writer, corpus=services.corpus, rows=rows)
    ordered = (
        {**row, "before": before}
        for chunks in prepared.chunks.values()
        for row, before in zip(
            chunk_rows(chunks, corpus=services.corpus, language=language),
            (None, *(chunk.uid for chunk in chunks)),
            strict=False,
        )
    )
    for batch in batches(ordered, size=SEGMENT):
        vectors = services.embed([row["text"] for row in batch], kind="document")
        create_chunks(writer, corpus=services.corpus, rows=batch, vectors=vectors)
    for entities in batches(prepared.entities.items(), size=SEGMENT):
        _create(services, writer, ENTITY, entities)
        report(done := done + len(entities), total)
    for relations in batches(prepared.relations.items()):
        _create(services, writer, RELATION, relations)
        report(done := done + len(relations), total)


def _create(
    services: Services, writer: GuardedWriter, kind: Kind, batch: Sequence[tuple[Any, Sequence[Contribution]]]
) -> None:
    rows, texts = [], []
    for key, contributions in batch:
        fields = kind.fields(contributions, limit=services.settings.description_characters)
        given = dump(contributions)
        rows.append(kind.row(services.corpus, key, chunks_of(contributions), given=given, fields=fields))
        texts.append(kind.text(key, fields))
    vectors = services.embed(texts, kind="document")
    writer.run(kind.create, corpus=services.corpus, rows=in_order(rows_with_vectors(rows, vectors)))


def adopt(
    services: Services, source: Database, shape: Shape, *, report: CountReport = lambda _, __: None
) -> AdoptReport:
    """Import the graph in `source`, and report what the corpus then holds.

    Importing the same graph again writes nothing. Raises `UsageError` if there is nothing to import, or if nodes of
    another application carry the corpus's name.
    """
    members = int(services.database.run("foreign_members", corpus=services.corpus)[0]["nodes"])
    if members:
        raise UsageError(
            f"{members} nodes that hgmem did not write have the property corpus: {services.corpus!r}: import into "
            "a corpus with another name"
        )
    found = foreign_graph(source, shape)
    given, notes = assembled(found, shape)
    if not given.chunks:
        raise UsageError(_nothing(source, found, shape))
    if found.entities and not given.entities:
        raise UsageError(_nameless(found, shape))
    doubled = tuple(_doubled(source, shape))
    written = import_graph(services, given, report=report)
    row = known_corpus(services)
    status = count_corpus(services.database, corpus=row)
    return AdoptReport(
        corpus=services.corpus,
        written=written,
        documents=status.documents,
        chunks=status.chunks,
        entities=status.entities,
        relations=status.relations,
        notes=(*_absent(found, shape, doubled), *notes, *doubled, *_crowded(services.database, row.dimensions)),
    )


def foreign_graph(source: Database, shape: Shape) -> ForeignGraph:
    """Return the whole foreign graph, read page by page, without hgmem's own nodes."""
    found, lexical = ForeignGraph(), [shape.document_label, shape.chunk_label]
    for page in _pages(source, shape.document_label, [shape.chunk_label]):
        found.documents += _with_properties(source.run("foreign_documents", ids=page))
    for page in _pages(source, shape.chunk_label, []):
        found.chunks += source.run(
            "foreign_chunks",
            ids=page,
            text=shape.text_property,
            position=shape.index_property,
            own=shape.id_property,
            in_document=shape.document_relationship,
            document=shape.document_label,
            next_chunk=shape.next_relationship,
            chunk=shape.chunk_label,
        )
    for page in _pages(source, shape.entity_label, lexical):
        entities = source.run(
            "foreign_entities", ids=page, from_chunk=shape.entity_relationship, chunk=shape.chunk_label
        )
        found.entities += _with_properties(entities)
        found.relations += _relations(source, page, entity=shape.entity_label, others=lexical)
    return found


def _pages(source: Database, label: str, others: list[str]) -> Iterator[list[str]]:
    after = ""
    while ids := [row["id"] for row in source.run("foreign_nodes", label=label, others=others, after=after, most=IDS)]:
        yield from batches(ids, size=PAGE)
        after = ids[-1]


def _relations(source: Database, ids: list[str], *, entity: str, others: list[str]) -> Iterator[Element]:
    after = ""
    while rows := source.run("foreign_relations", ids=ids, entity=entity, others=others, after=after, most=RELATIONS):
        yield from _with_properties(rows)
        after = rows[-1]["id"]


def _with_properties(rows: list[Row]) -> list[Row]:
    """Return rows with their properties, which are pairs of name and value, as a mapping."""
    return [{**row, "properties": dict(row["properties"])} for row in rows]


def _nothing(source: Database, found: ForeignGraph, shape: Shape) -> str:
    """Return an error message that says what was searched for and what exists."""
    if found.chunks:
        looked = (
            f"none of the {len(found.chunks):,} nodes (:{shape.chunk_label}) has text in property "
            f"{shape.text_property!r}"
        )
        return f"nothing to import: {looked}; name the text property with --text-property"
    labels = source.run("foreign_labels", most=NAMES)
    there = ", ".join(f"(:{row['label']}) {row['nodes']:,}" for row in labels)
    where = source.address.database or "the default database"
    return (
        f"nothing to import: {where} of {source.address.uri!r} has no chunks, that is, nodes "
        f"(:{shape.chunk_label}) not written by hgmem; other nodes there: {there or 'none'}; name the chunk label "
        "with --chunk-label, or another source with --from-database and --from-uri"
    )


def _nameless(found: ForeignGraph, shape: Shape) -> str:
    """Return an error message that lists the properties that could hold entity names."""
    there = ", ".join(f"{name!r} {nodes:,}" for name, nodes in name_properties(found.entities).most_common(NAMES))
    return (
        f"none of the {len(found.entities):,} nodes (:{shape.entity_label}) has a name in property "
        f"{shape.name_property!r}; candidates: {there or 'none'}; name the property with --name-property"
    )


def _doubled(source: Database, shape: Shape) -> Iterator[str]:
    """Yield a note for each pair of labels that nodes share, with the label used."""
    document, chunk, entity = shape.document_label, shape.chunk_label, shape.entity_label
    for taken, label, others in ((chunk, entity, ()), (document, entity, (chunk,)), (chunk, document, (entity,))):
        if nodes := int(source.run("foreign_twice", label=label, other=taken, others=others)[0]["nodes"]):
            both = counted(nodes, "node is", "nodes are")
            yield f"{both} both (:{label}) and (:{taken}): imported as (:{taken}) only"


def _absent(found: ForeignGraph, shape: Shape, doubled: tuple[str, ...]) -> Iterator[str]:
    """Yield a note for each part of the graph that is missing, with the option that maps it."""
    if not found.entities and not doubled:
        yield (
            f"no nodes (:{shape.entity_label}) found, so no entities were imported: name the entity label with "
            "--entity-label"
        )
    elif not any(entity["chunks"] for entity in found.entities):
        kind = shape.entity_relationship
        yield f"no entity is linked to a chunk by {kind}: name the relationship type with --entity-relationship"
    if found.documents and not any(chunk["documents"] for chunk in found.chunks):
        kind = shape.document_relationship
        yield f"no chunk is linked to a document by {kind}: name the relationship type with --document-relationship"


def _crowded(database: Database, dimensions: int) -> Iterator[str]:
    """Yield a note for each index of another application that also covers hgmem's nodes."""
    ours = declared()
    for name, row in show_indexes(database).items():
        if name not in ours and any(_takes_in(row, one, dimensions) for one in ours.values()):
            yield (
                f"index {name!r} also covers hgmem's nodes (:{row['labels'][0]}), so applications that search it "
                "will find them: import into another database or server to keep them apart"
            )


def _takes_in(row: Row, ours: Declared, dimensions: int) -> bool:
    """Return whether an index holds what one of ours does."""
    if row["type"] != ours.type or not {*ours.labels} & {*(row["labels"] or ())}:
        return False
    properties = set(row["properties"] or ())
    if ours.type == "VECTOR":
        indexed = row["options"].get("indexConfig", {}).get("vector.dimensions", dimensions)
        return indexed == dimensions and "embedding" in properties
    return ours.type == "FULLTEXT" and not properties.isdisjoint(("text", *ours.properties))
