"""Add a pre-built graph to a corpus that may already have contents.

The graph is one more contribution to each of its entities and relations.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hgmem.corpus.aggregation import (
    SEGMENT,
    Prebuilt,
    batches,
    embed_missing,
    entity_row,
    rebuild_entities,
    rebuild_relations,
    relation_row,
)
from hgmem.corpus.guarded_writes import GuardedWriter, check_embedder, embedding
from hgmem.corpus.prebuilt_graph import Prepared, prepare
from hgmem.errors import ConflictError
from hgmem.extraction.contributions import (
    EntityContribution,
    RelationContribution,
    chunks_of,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
)
from hgmem.graph.builds import ADDED, CHANGED, EXTENDED, mark_builds
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    DocumentState,
    chunks_of_documents,
    document_states,
    finish_documents,
    link_chunks,
    put_chunks,
    put_documents,
)
from hgmem.graph.entities import (
    EntityRow,
    RelationRow,
    known_entities,
    known_relations,
    touch_entities,
    touch_relations,
)
from hgmem.graph.values import Runner, to_json
from hgmem.services import Services, check_dimensions, open_corpus
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document, Given

GIVEN = "given"  # `Document.chunking` of documents that came with their chunks
DOCUMENTS = 500  # maximum documents per batch
CHUNKS = 5_000  # a batch ends before it exceeds this many chunks


def add_graph(services: Services, given: Given) -> None:
    """Write a pre-built graph into the corpus, skipping what is already stored.

    Raises `UsageError` for an invalid graph, and `ConflictError` if its documents or entities are deleted meanwhile.
    """
    prepared = prepare(given, corpus=services.corpus, written=to_json(given))
    check_dimensions(services, open_corpus(services))
    writer = embedding(services)
    for documents in _grouped(prepared):
        _put_documents(services, writer, documents, prepared.chunks)
    entities = [uid for some in batches(prepared.entities.items()) for uid in _add_entities(services, some)]
    relations = [uid for some in batches(prepared.relations.items()) for uid in _add_relations(services, some)]
    embed_missing(services, entities=entities, relations=relations)


def _grouped(prepared: Prepared) -> Iterator[dict[str, Document]]:
    """Yield batches of documents by uid, bounded by `DOCUMENTS` and `CHUNKS`."""
    group: dict[str, Document] = {}
    chunks = 0
    for uid, document in prepared.documents.items():
        more = len(prepared.chunks.get(uid, ()))
        if group and (len(group) == DOCUMENTS or chunks + more > CHUNKS):
            yield group
            group, chunks = {}, 0
        group[uid] = document
        chunks += more
    if group:
        yield group


def _put_documents(
    services: Services, writer: Runner, documents: Mapping[str, Document], chunks: Mapping[str, Sequence[Chunk]]
) -> None:
    """Write new, changed and unfinished documents with their chunks and vectors."""
    corpus, database = services.corpus, services.database
    states = document_states(database, corpus=corpus, uids=list(documents))
    stored = chunks_of_documents(database, corpus=corpus, documents=list(documents))
    done = {uid for statuses in stored.values() for uid, status in statuses.items() if status == "done"}
    open_ = {
        uid: properties
        for uid, properties in ((uid, properties_of(document)) for uid, document in documents.items())
        if not _is_whole(states.get(uid), properties, done.issuperset(chunk.uid for chunk in chunks.get(uid, ())))
    }
    if not open_:
        return
    marks = _marking(services, ADDED if not open_.keys() & states.keys() else CHANGED)
    put_documents(marks, corpus=corpus, documents=open_)
    for batch in batches((chunk for uid in open_ for chunk in chunks.get(uid, ())), size=SEGMENT):
        fresh = [chunk for chunk in batch if chunk.uid not in done]  # the others may only have new positions
        vectors = services.embed([chunk.text for chunk in fresh], kind="document") if fresh else ()
        named = {chunk.uid: vector for chunk, vector in zip(fresh, vectors, strict=True)}
        put_chunks(writer, corpus=corpus, chunks=batch, vectors=named)
    link_chunks(writer, corpus=corpus, documents=list(open_))
    finished = finish_documents(marks, corpus=corpus, uids=list(open_))
    if len(finished) < len(open_):
        raise ConflictError(
            f"{len(open_) - len(finished)} documents of corpus {corpus!r} were deleted during the call or have "
            "chunks that are not indexed: index them, then add the graph again"
        )


def _marking(services: Services, change: str) -> GuardedWriter:
    """Return a writer that checks the embedder, and says of the corpus's builds that it has changed, and how."""
    return GuardedWriter(database=services.database, check=lambda at: _check_and_mark(at, services, change))


def _check_and_mark(transaction: Runner, services: Services, change: str) -> None:
    check_embedder(transaction, services)
    mark_builds(transaction, corpus=services.corpus, change=change)


def _is_whole(state: DocumentState | None, properties: Mapping[str, str], chunks_done: bool) -> bool:
    return state is not None and state.status == "done" and chunks_done and _described(state) == properties


def _described(state: DocumentState) -> dict[str, str]:
    return {name: getattr(state, name) for name in ("title", "source", "metadata", "sha256", "chunking")}


def properties_of(document: Document) -> dict[str, str]:
    """Return the stored properties of a document that came with its chunks."""
    return {
        "title": document.title,
        "source": document.source,
        "metadata": to_json(document.metadata),
        "sha256": text_hash(document.text),
        "chunking": GIVEN,
    }


def _add_entities(services: Services, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]) -> list[str]:
    """Write contributions to entities, and return the uids of entities without a vector.

    Only new entities are embedded here.
    """
    rows = [entity_row(services.corpus, key, chunks_of(contributions)) for key, contributions in batch]
    given = {row.uid: contributions for row, (_, contributions) in zip(rows, batch, strict=True)}
    known = known_entities(services.database, corpus=services.corpus, uids=list(given))
    texts = {}
    for uid, contributions in given.items():
        if uid not in known:
            fields = entity_fields(contributions, limit=services.settings.description_characters)
            texts[uid] = entity_text(fields.name, fields.description.text)
    prebuilt = Prebuilt(given=given, vectors=_embedded(services, texts))
    return services.database.write(_write_entities, services, rows, prebuilt)


def _add_relations(
    services: Services, batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]]
) -> list[str]:
    """Write contributions to relations, and return the uids of relations without a vector."""
    rows = [relation_row(services.corpus, ends, chunks_of(contributions)) for ends, contributions in batch]
    given = {row.uid: contributions for row, (_, contributions) in zip(rows, batch, strict=True)}
    known = known_relations(services.database, corpus=services.corpus, uids=list(given))
    texts = {}
    for row, (ends, contributions) in zip(rows, batch, strict=True):
        if row.uid not in known:
            fields = relation_fields(contributions, limit=services.settings.description_characters)
            texts[row.uid] = relation_text(ends, fields.description.text, fields.keywords)
    prebuilt = Prebuilt(given=given, vectors=_embedded(services, texts))
    return services.database.write(_write_relations, services, rows, prebuilt)


def _embedded(services: Services, texts: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Return each text with its vector, by uid."""
    vectors = services.embed(list(texts.values()), kind="document") if texts else ()
    return {uid: (texts[uid], vector) for uid, vector in zip(texts, vectors, strict=True)}


def _write_entities(
    transaction: Transaction, services: Services, rows: Sequence[EntityRow], prebuilt: Prebuilt[EntityContribution]
) -> list[str]:
    if prebuilt.vectors:  # of what is new
        _check_and_mark(transaction, services, EXTENDED)
    inputs = touch_entities(transaction, corpus=services.corpus, rows=rows)
    return rebuild_entities(transaction, services, inputs, prebuilt=prebuilt)


def _write_relations(
    transaction: Transaction, services: Services, rows: Sequence[RelationRow], prebuilt: Prebuilt[RelationContribution]
) -> list[str]:
    if prebuilt.vectors:  # of what is new
        _check_and_mark(transaction, services, EXTENDED)
    inputs = touch_relations(transaction, corpus=services.corpus, rows=rows)
    if len(inputs) < len(rows):
        raise ConflictError(
            f"endpoints of {len(rows) - len(inputs)} relations were deleted from corpus {services.corpus!r} during "
            "the call: add the graph again"
        )
    return rebuild_relations(transaction, services, inputs, prebuilt=prebuilt)
