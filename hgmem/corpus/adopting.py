"""Adopting a graph that Neo4j's GraphRAG package wrote: read in bounded pages, copied, theirs left as it is."""

from collections.abc import Iterator
from dataclasses import dataclass

from hgmem.corpus.fold import Report
from hgmem.corpus.importing import import_graph
from hgmem.errors import UsageError
from hgmem.graph.adopting import (
    foreign_chunks,
    foreign_documents,
    foreign_entities,
    foreign_labels,
    foreign_members,
    foreign_nodes,
    foreign_relations,
    foreign_twice,
)
from hgmem.graph.corpus import count_corpus
from hgmem.graph.database import Database, Row
from hgmem.graph.schema import FULLTEXT, VECTOR, show_indexes
from hgmem.graphrag import assembled
from hgmem.graphrag.entities import name_properties
from hgmem.graphrag.shape import ForeignRelation, Found, Shape
from hgmem.services import Services, known_corpus

IDS, PAGE, RELATIONS = 50_000, 500, 5_000  # rows that one statement returns at most
NAMES = 10  # of labels or properties that an error lists


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptReport:
    """What the corpus holds after adopting; `notes` say what was left out, `written` whether anything was written."""

    corpus: str
    written: bool
    documents: int
    chunks: int
    entities: int
    relations: int
    notes: tuple[str, ...] = ()


def adopt(services: Services, source: Database, shape: Shape, *, report: Report = lambda _, __: None) -> AdoptReport:
    """Return what was adopted from `source`; the same graph again writes nothing."""
    members = foreign_members(services.database, corpus=services.corpus)
    if members:
        raise UsageError(
            f"{members} nodes that are not hgmem's carry corpus: {services.corpus!r}, and it would take them for its "
            "own: adopt into a corpus of another name"
        )
    found = read(source, shape)
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


def read(source: Database, shape: Shape) -> Found:
    """Return their graph, all of it, a page at a time; what is hgmem's own is left out."""
    found, lexical = Found(), shape.lexical_labels
    for page in _pages(source, shape.document_label, (shape.chunk_label,)):
        found.documents += foreign_documents(source, ids=page)
    for page in _pages(source, shape.chunk_label, ()):
        found.chunks += foreign_chunks(source, ids=page, shape=shape)
    for page in _pages(source, shape.entity_label, lexical):
        found.entities += foreign_entities(source, ids=page, shape=shape)
        found.relations += _relations(source, page, shape)
    return found


def _pages(source: Database, label: str, others: tuple[str, ...]) -> Iterator[list[str]]:
    after = ""
    while ids := foreign_nodes(source, label=label, others=others, after=after, most=IDS):
        yield from (ids[at : at + PAGE] for at in range(0, len(ids), PAGE))
        after = ids[-1]


def _relations(source: Database, ids: list[str], shape: Shape) -> Iterator[ForeignRelation]:
    after = ""
    while rows := foreign_relations(source, ids=ids, shape=shape, after=after, most=RELATIONS):
        yield from rows
        after = rows[-1].id


def _nothing(source: Database, found: Found, shape: Shape) -> str:
    """Return why there is nothing to adopt: what was looked for, what is there, and how to say which it is."""
    if found.chunks:
        looked = f"none of the {len(found.chunks):,} nodes (:{shape.chunk_label}) has text in {shape.text_property!r}"
        return f"there is nothing to adopt: {looked}; --text-property names another property"
    there = ", ".join(f"(:{label}) {nodes:,}" for label, nodes in foreign_labels(source, most=NAMES).items())
    where = source.address.database or "the default database"
    return (
        f"there is nothing to adopt: {where} of {source.address.uri!r} has no chunks, nodes (:{shape.chunk_label}) "
        f"that are not hgmem's; there are {there or 'no other nodes'}; --chunk-label names another label, "
        "--from-database and --from-uri another place"
    )


def _nameless(found: Found, shape: Shape) -> str:
    """Return why there are no entities, and which properties could hold their names."""
    there = ", ".join(f"{name!r} {nodes:,}" for name, nodes in name_properties(found.entities).most_common(NAMES))
    return (
        f"none of the {len(found.entities):,} nodes (:{shape.entity_label}) has a name in {shape.name_property!r}; "
        f"they have {there or 'no property that could be one'}; --name-property names another property"
    )


def _doubled(source: Database, shape: Shape) -> Iterator[str]:
    """Yield, counted, which nodes are two things at once, and as which they were taken."""
    document, chunk, entity = shape.document_label, shape.chunk_label, shape.entity_label
    for taken, label, others in ((chunk, entity, ()), (document, entity, (chunk,)), (chunk, document, (entity,))):
        if nodes := foreign_twice(source, label=label, other=taken, others=others):
            said = "node is" if nodes == 1 else "nodes are"
            yield f"{nodes:,} {said} both (:{label}) and (:{taken}): taken as (:{taken}) alone"


def _absent(found: Found, shape: Shape, doubled: tuple[str, ...]) -> Iterator[str]:
    """Yield what a graph of the package's has and this one lacks: perhaps it is called otherwise."""
    if not found.entities and not doubled:
        yield f"no entities: there are no nodes (:{shape.entity_label}); --entity-label names another label"
    elif not any(entity.chunks for entity in found.entities):
        kind = shape.entity_relationship
        yield f"no entity is linked to a chunk by {kind}; --entity-relationship names another type"
    if found.documents and not any(chunk.documents for chunk in found.chunks):
        kind = shape.document_relationship
        yield f"no chunk is linked to a document by {kind}; --document-relationship names another type"


def _crowded(database: Database, dimensions: int) -> Iterator[str]:
    """Yield the indexes of others that take in nodes of hgmem's: who searches them will find those too."""
    for name, row in show_indexes(database).items():
        if name not in VECTOR and name not in FULLTEXT and _takes_in(row, dimensions):
            yield (
                f"index {name!r} takes in hgmem's nodes (:{row['labels'][0]}) too, and an application that searches it "
                "will find them: adopt into another database or server to keep them apart"
            )


def _takes_in(row: Row, dimensions: int) -> bool:
    labels, properties = set(row["labels"] or ()), set(row["properties"] or ())
    if row["type"] == "VECTOR":
        indexed = row["options"].get("indexConfig", {}).get("vector.dimensions", dimensions)
        return indexed == dimensions and any(labels & {of[0]} for of in VECTOR.values()) and "embedding" in properties
    return row["type"] == "FULLTEXT" and any(labels & {of[0]} and properties & set(of[1:]) for of in FULLTEXT.values())
