"""Delete documents or a corpus, with everything that nothing else supports.

The transaction that deletes chunks marks the entities and relations that they supported as needing recomputation. Each
of them is then recomputed once, without a model. If interrupted, the next run finds the marks and resumes.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hgmem.corpus.aggregation import batches, embed_missing, embed_unembedded, rebuild_entities, rebuild_relations
from hgmem.corpus.guarded_writes import check_embedder
from hgmem.errors import UsageError
from hgmem.graph.builds import DELETED, mark_builds
from hgmem.graph.built import drop_dependents
from hgmem.graph.corpus import count_corpus, delete_corpus_contents, delete_corpus_node, mark_corpus
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    DocumentState,
    chunks_of_documents,
    delete_chunks,
    delete_document_nodes,
    document_states,
    documents_of_files,
    entities_of_chunks,
    lock_chunks,
    unseal_documents,
)
from hgmem.graph.entities import entity_contributions, lock_entities, mark_stale, relation_contributions, stale
from hgmem.services import Services, check_dimensions, known_corpus, readable_corpus
from hgmem.text.identity import uid

Name: TypeAlias = str | os.PathLike[str]
Named: TypeAlias = Name | Iterable[Name]

CHUNKS = 2_000  # chunks a transaction
DOCUMENTS = 1_000  # documents a transaction


def delete_documents(services: Services, names: Named) -> int:
    """Delete the documents that `names` stand for (`named_documents`), and return their number."""
    row = readable_corpus(services)
    database, corpus = services.database, services.corpus
    states = named_documents(services, names)
    check_dimensions(services, row)
    uids = [state.uid for state in states]
    for batch in batches(uids, size=DOCUMENTS):
        unseal_documents(database, corpus=corpus, uids=batch)  # indexed anew, should this be cut short
    found = chunks_of_documents(database, corpus=corpus, documents=uids)
    drop_chunks(services, [chunk for stored in found.values() for chunk in stored])
    if not all(state.sha256 for state in states):  # writing or deleting one was cut short before
        finish_interrupted(services)
    for batch in batches(uids, size=DOCUMENTS):
        delete_document_nodes(database, corpus=corpus, uids=batch)
    return len(uids)


def named_documents(services: Services, names: Named) -> list[DocumentState]:
    """Return the documents that `names` stand for, each once.

    A name is the uid, the id or the path of one document. A path that is no document's stands for every document of
    that file, such as the rows of a table. Raises `UsageError` for a name that stands for nothing.
    """
    database, corpus = services.database, services.corpus
    given = [names] if isinstance(names, str | os.PathLike) else names
    paths = {name: os.path.abspath(name) for name in (str(os.fspath(each)) for each in given)}
    meant = {name: (name, *(uid(corpus, "document", each) for each in (name, paths[name]))) for name in paths}
    states = document_states(database, corpus=corpus, uids=[each for uids in meant.values() for each in uids])
    found = {name: [each for each in uids if each in states][:1] for name, uids in meant.items()}
    if files := [paths[name] for name, uids in found.items() if not uids]:
        rows = documents_of_files(database, corpus=corpus, paths=files)
        found = {name: uids or rows.get(paths[name], []) for name, uids in found.items()}
        states |= document_states(database, corpus=corpus, uids=[each for uids in rows.values() for each in uids])
    if missing := [name for name, uids in found.items() if not uids]:
        raise UsageError(
            f"corpus {corpus!r} has no document {missing[0]!r}, and none from a file of that name: "
            f"`hgmem status --corpus {corpus}` lists its documents"
        )
    named = dict.fromkeys(each for uids in found.values() for each in uids)
    return [states[each] for each in named if each in states]  # but those that another run deleted meanwhile


def delete_corpus(services: Services) -> int:
    """Delete the corpus with its memories, whatever its status, and return the number of its documents."""
    documents = count_corpus(services.database, corpus=known_corpus(services)).documents
    mark_corpus(services.database, corpus=services.corpus, status="deleting")  # cut short, it is no corpus to read
    delete_corpus_contents(services.database, corpus=services.corpus)
    delete_corpus_node(services.database, corpus=services.corpus)
    return documents


def drop_chunks(services: Services, chunks: Sequence[str], *, change: str = DELETED) -> None:
    """Delete chunks (uids), and recompute the entities and relations that they supported.

    `change` is what the builds of the corpus are told.
    """
    entities: dict[str, None] = {}
    relations: dict[str, None] = {}
    for batch in batches(chunks, size=CHUNKS):
        touched, joined = services.database.write(drop, services, batch, change=change)
        entities |= dict.fromkeys(touched)
        relations |= dict.fromkeys(joined)
    refresh(services, entities, relations)


def finish_interrupted(services: Services) -> None:
    """Recompute and embed whatever an interrupted run left unfinished."""
    refresh(services, *stale(services.database, corpus=services.corpus))
    embed_unembedded(services)


def drop(
    transaction: Transaction, services: Services, chunks: Sequence[str], *, change: str
) -> tuple[list[str], list[str]]:
    """Delete chunks (uids) in a transaction, and return the entities and relations to refresh."""
    check_embedder(transaction, services)
    lock_chunks(transaction, corpus=services.corpus, uids=chunks)
    entities, relations = entities_of_chunks(transaction, corpus=services.corpus, chunks=chunks)
    lock_entities(transaction, corpus=services.corpus, uids=entities)
    mark_stale(transaction, corpus=services.corpus, entities=entities, relations=relations)
    drop_dependents(transaction, corpus=services.corpus, uids=chunks)
    mark_builds(transaction, corpus=services.corpus, change=change)
    delete_chunks(transaction, corpus=services.corpus, uids=chunks)
    return entities, relations


def refresh(services: Services, entities: Iterable[str], relations: Iterable[str]) -> None:
    """Recompute relations, then entities, then embed both.

    Relations come first, because an entity stays while a relation joins it.
    """
    entities, relations = sorted(set(entities)), sorted(set(relations))
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
    check_embedder(transaction, services)  # an entity that becomes provisional keeps its vector
    lock_entities(transaction, corpus=services.corpus, uids=uids)
    rebuild_entities(transaction, services, entity_contributions(transaction, corpus=services.corpus, uids=uids))
