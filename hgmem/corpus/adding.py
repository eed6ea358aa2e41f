"""Adding a ready-made graph to a corpus, beside what is there: one more contribution to each entity and relation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hgmem.contributions import (
    EntityContribution,
    RelationContribution,
    chunks_of,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
)
from hgmem.corpus.fold import (
    SEGMENT,
    Brought,
    batches,
    embed_missing,
    entity_row,
    rebuild_entities,
    rebuild_relations,
    relation_row,
)
from hgmem.corpus.holding import check_embedder, embedding
from hgmem.errors import ConflictError
from hgmem.given import Prepared, prepare
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
from hgmem.identity import text_hash
from hgmem.inputs import Document, Given
from hgmem.model import Chunk
from hgmem.services import Services, check_dimensions, open_corpus

GIVEN = "given"  # how a document was cut whose chunks came with it
DOCUMENTS = 500  # written together
CHUNKS = 5_000  # or fewer documents, of so many chunks together


def add_graph(services: Services, given: Given) -> None:
    """Write a ready-made graph into the corpus; what is there already is not written twice."""
    prepared = prepare(given, corpus=services.corpus, written=to_json(given))
    check_dimensions(services, open_corpus(services))
    writer = embedding(services)
    for documents in _grouped(prepared):
        _put_documents(services, writer, documents, prepared.chunks)
    entities = [uid for some in batches(prepared.entities.items()) for uid in _add_entities(services, some)]
    relations = [uid for some in batches(prepared.relations.items()) for uid in _add_relations(services, some)]
    embed_missing(services, entities=entities, relations=relations)


def _grouped(prepared: Prepared) -> Iterator[dict[str, Document]]:
    """Yield the documents by uid, as many together as go with so many chunks."""
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
    """Write documents that are not all there yet, as they are now, with their chunks and vectors."""
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
    put_documents(writer, corpus=corpus, documents=open_)
    for batch in batches((chunk for uid in open_ for chunk in chunks.get(uid, ())), size=SEGMENT):
        fresh = [chunk for chunk in batch if chunk.uid not in done]  # of the others the positions may be others now
        vectors = services.embed([chunk.text for chunk in fresh], kind="document") if fresh else ()
        named = {chunk.uid: vector for chunk, vector in zip(fresh, vectors, strict=True)}
        put_chunks(writer, corpus=corpus, chunks=batch, vectors=named)
    link_chunks(writer, corpus=corpus, documents=list(open_))
    finished = finish_documents(writer, corpus=corpus, uids=list(open_))
    if len(finished) < len(open_):
        raise ConflictError(
            f"{len(open_) - len(finished)} documents of corpus {corpus!r} were deleted meanwhile, or hold chunks that "
            "are not indexed yet: index them, and add the graph again"
        )


def _is_whole(state: DocumentState | None, properties: Mapping[str, str], chunks_done: bool) -> bool:
    return state is not None and state.status == "done" and chunks_done and _described(state) == properties


def _described(state: DocumentState) -> dict[str, str]:
    return {name: getattr(state, name) for name in ("title", "source", "metadata", "sha256", "chunking")}


def properties_of(document: Document) -> dict[str, str]:
    """Return what is stored of a document that is brought with its chunks."""
    return {
        "title": document.title,
        "source": document.source,
        "metadata": to_json(document.metadata),
        "sha256": text_hash(document.text),
        "chunking": GIVEN,
    }


def _add_entities(services: Services, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]) -> list[str]:
    """Write what is said of entities, new ones with their vectors; return the uids of those that may lack one."""
    rows = [entity_row(services.corpus, key, chunks_of(said)) for key, said in batch]
    given = {row.uid: said for row, (_, said) in zip(rows, batch, strict=True)}
    known = known_entities(services.database, corpus=services.corpus, uids=list(given))
    texts = {}
    for uid, said in given.items():
        if uid not in known:
            fields = entity_fields(said, limit=services.settings.description_characters)
            texts[uid] = entity_text(fields.name, fields.description.text)
    brought = Brought(given=given, vectors=_embedded(services, texts))
    return services.database.write(_write_entities, services, rows, brought)


def _add_relations(
    services: Services, batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]]
) -> list[str]:
    """Write what is said of relations, as `_add_entities` does."""
    rows = [relation_row(services.corpus, ends, chunks_of(said)) for ends, said in batch]
    given = {row.uid: said for row, (_, said) in zip(rows, batch, strict=True)}
    known = known_relations(services.database, corpus=services.corpus, uids=list(given))
    texts = {}
    for row, (ends, said) in zip(rows, batch, strict=True):
        if row.uid not in known:
            fields = relation_fields(said, limit=services.settings.description_characters)
            texts[row.uid] = relation_text(ends, fields.description.text, fields.keywords)
    brought = Brought(given=given, vectors=_embedded(services, texts))
    return services.database.write(_write_relations, services, rows, brought)


def _embedded(services: Services, texts: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Return by uid each text with its vector."""
    vectors = services.embed(list(texts.values()), kind="document") if texts else ()
    return {uid: (texts[uid], vector) for uid, vector in zip(texts, vectors, strict=True)}


def _write_entities(
    transaction: Transaction, services: Services, rows: Sequence[EntityRow], brought: Brought[EntityContribution]
) -> list[str]:
    if brought.vectors:
        check_embedder(transaction, services)
    inputs = touch_entities(transaction, corpus=services.corpus, rows=rows)
    return rebuild_entities(transaction, services, inputs, brought=brought)


def _write_relations(
    transaction: Transaction, services: Services, rows: Sequence[RelationRow], brought: Brought[RelationContribution]
) -> list[str]:
    if brought.vectors:
        check_embedder(transaction, services)
    inputs = touch_relations(transaction, corpus=services.corpus, rows=rows)
    if len(inputs) < len(rows):
        raise ConflictError(
            f"entities that {len(rows) - len(inputs)} relations join were deleted from corpus {services.corpus!r} "
            "meanwhile: add the graph again"
        )
    return rebuild_relations(transaction, services, inputs, brought=brought)
