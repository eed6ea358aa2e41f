"""Deleting: exactly what only the deleted supported goes; what others support is written anew, without a model."""

from collections.abc import Sequence

from hgmem.corpus.fold import batches, embed_missing, embed_rest, rebuild_entities, rebuild_relations
from hgmem.errors import UsageError
from hgmem.graph.corpus import delete_corpus_contents, delete_corpus_node, mark_corpus
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    chunks_of_document,
    delete_chunks,
    delete_document_node,
    document_states,
    entities_of_chunks,
    seal_document,
)
from hgmem.graph.entities import lock_entities
from hgmem.services import Services, check_dimensions, known_corpus, readable_corpus

CHUNKS = 500  # chunks a transaction


def delete_document(services: Services, *, uid: str) -> int:
    """Return how many chunks went with the document."""
    row = readable_corpus(services)
    database, corpus = services.database, services.corpus
    state = document_states(database, corpus=corpus, uids=[uid]).get(uid)
    if state is None:
        raise UsageError(f"corpus {corpus!r} has no document {uid!r}: `hgmem status --corpus {corpus}` lists them")
    check_dimensions(services, row)
    seal_document(database, corpus=corpus, uid=uid, sha256="")  # indexed anew, should this be cut short
    chunks = list(chunks_of_document(database, corpus=corpus, document=uid))
    drop_chunks(services, chunks)
    if not state.sha256:  # writing or deleting it was cut short before
        embed_rest(services)
    delete_document_node(database, corpus=corpus, uid=uid)
    return len(chunks)


def delete_corpus(services: Services) -> None:
    """Delete the corpus with everything in it, memories too; whatever its status."""
    known_corpus(services)
    mark_corpus(services.database, corpus=services.corpus, status="deleting")  # cut short, it is no corpus to read
    delete_corpus_contents(services.database, corpus=services.corpus)
    delete_corpus_node(services.database, corpus=services.corpus)


def drop_chunks(services: Services, chunks: Sequence[str]) -> None:
    """Delete chunks (uids) and write anew what they supported together with others."""
    for batch in batches(chunks, size=CHUNKS):
        entities, relations = services.database.write(_drop, services, batch)
        embed_missing(services, entities=entities, relations=relations)


def _drop(transaction: Transaction, services: Services, chunks: Sequence[str]) -> tuple[list[str], list[str]]:
    entities, relations = entities_of_chunks(transaction, corpus=services.corpus, chunks=chunks)
    lock_entities(transaction, corpus=services.corpus, uids=entities)
    delete_chunks(transaction, corpus=services.corpus, uids=chunks)
    rebuild_relations(transaction, services, relations)
    rebuild_entities(transaction, services, entities)
    return entities, relations
