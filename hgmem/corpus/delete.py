"""Deleting: exactly what only the deleted supported goes; what others support is written anew, without a model.

What rested on a chunk is marked in the transaction that deletes the chunk, and written anew once, after the last one:
so a run that is cut short leaves marks for the next, and a hundred documents cost no more than what they touch.
"""

import os
from collections.abc import Iterable, Sequence

from hgmem.corpus.fold import batches, embed_missing, embed_rest, rebuild_entities, rebuild_relations
from hgmem.corpus.holding import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.corpus import delete_corpus_contents, delete_corpus_node, mark_corpus
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    DocumentState,
    chunks_of_documents,
    delete_chunks,
    delete_document_node,
    document_states,
    entities_of_chunks,
    lock_chunks,
    seal_document,
)
from hgmem.graph.entities import entity_contributions, lock_entities, mark_stale, relation_contributions, stale
from hgmem.identity import uid
from hgmem.services import Services, check_dimensions, known_corpus, readable_corpus

CHUNKS = 2_000  # chunks a transaction


def delete_documents(services: Services, names: Sequence[str]) -> int:
    """Return how many chunks went with documents, each named by uid, id or path; one that is unknown keeps them all."""
    row = readable_corpus(services)
    database, corpus = services.database, services.corpus
    states = [known_document(services, name) for name in dict.fromkeys(names)]
    check_dimensions(services, row)
    for state in states:
        seal_document(database, corpus=corpus, uid=state.uid, sha256="")  # indexed anew, should this be cut short
    found = chunks_of_documents(database, corpus=corpus, documents=[state.uid for state in states])
    chunks = [chunk for stored in found.values() for chunk in stored]
    drop_chunks(services, chunks)
    if not all(state.sha256 for state in states):  # writing or deleting one was cut short before
        finish_rest(services)
    for state in states:
        delete_document_node(database, corpus=corpus, uid=state.uid)
    return len(chunks)


def known_document(services: Services, name: str) -> DocumentState:
    """Return what is stored of the document with this uid, id or path."""
    corpus = services.corpus
    uids = [name, uid(corpus, "document", name), uid(corpus, "document", os.path.abspath(name))]
    found = document_states(services.database, corpus=corpus, uids=uids)
    for candidate in uids:
        if candidate in found:
            return found[candidate]
    raise UsageError(f"corpus {corpus!r} has no document {name!r}: `hgmem status --corpus {corpus}` lists them")


def delete_corpus(services: Services) -> None:
    """Delete the corpus with everything in it, memories too; whatever its status."""
    known_corpus(services)
    mark_corpus(services.database, corpus=services.corpus, status="deleting")  # cut short, it is no corpus to read
    delete_corpus_contents(services.database, corpus=services.corpus)
    delete_corpus_node(services.database, corpus=services.corpus)


def drop_chunks(services: Services, chunks: Sequence[str]) -> None:
    """Delete chunks (uids) and write anew what they supported together with others."""
    entities: dict[str, None] = {}
    relations: dict[str, None] = {}
    for batch in batches(chunks, size=CHUNKS):
        touched, joined = services.database.write(_drop, services, batch)
        entities |= dict.fromkeys(touched)
        relations |= dict.fromkeys(joined)
    _refresh(services, entities, relations)


def finish_rest(services: Services) -> None:
    """Write anew what is marked still, and give a vector to what lacks one: a run that was killed left it so."""
    _refresh(services, *stale(services.database, corpus=services.corpus))
    embed_rest(services)


def _drop(transaction: Transaction, services: Services, chunks: Sequence[str]) -> tuple[list[str], list[str]]:
    check_embedder(transaction, services)
    lock_chunks(transaction, corpus=services.corpus, uids=chunks)
    entities, relations = entities_of_chunks(transaction, corpus=services.corpus, chunks=chunks)
    lock_entities(transaction, corpus=services.corpus, uids=entities)
    mark_stale(transaction, corpus=services.corpus, entities=entities, relations=relations)
    delete_chunks(transaction, corpus=services.corpus, uids=chunks)
    return entities, relations


def _refresh(services: Services, entities: Iterable[str], relations: Iterable[str]) -> None:
    """Write relations anew, then entities, which stay for as long as a relation joins them; then their vectors."""
    entities, relations = sorted(entities), sorted(relations)
    for batch in batches(relations):
        services.database.write(_refresh_relations, services, batch)
    for batch in batches(entities):
        services.database.write(_refresh_entities, services, batch)
    embed_missing(services, entities=entities, relations=relations)


def _refresh_relations(transaction: Transaction, services: Services, uids: Sequence[str]) -> None:
    inputs = relation_contributions(transaction, corpus=services.corpus, uids=uids)
    keys = {key for one in inputs for key in (one.source, one.target)}
    lock_entities(transaction, corpus=services.corpus, uids=[uid(services.corpus, "entity", key) for key in keys])
    rebuild_relations(transaction, services, relation_contributions(transaction, corpus=services.corpus, uids=uids))


def _refresh_entities(transaction: Transaction, services: Services, uids: Sequence[str]) -> None:
    check_embedder(transaction, services)  # an entity that a memory keeps takes its vector along
    lock_entities(transaction, corpus=services.corpus, uids=uids)
    rebuild_entities(transaction, services, entity_contributions(transaction, corpus=services.corpus, uids=uids))
