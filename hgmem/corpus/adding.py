"""Adding a ready-made graph to a corpus, beside what is there: one more contribution to each entity and relation."""

from collections.abc import Mapping, Sequence

from hgmem.contributions import (
    Contribution,
    EntityContribution,
    RelationContribution,
    chunks_of,
    dump,
    load_entities,
    load_relations,
)
from hgmem.corpus.fold import (
    batches,
    embed_missing,
    entity_row,
    rebuild_entities,
    rebuild_relations,
    relation_row,
)
from hgmem.corpus.holding import embedding
from hgmem.given import Prepared, prepare
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    DocumentState,
    chunks_of_document,
    document_states,
    finish_chunks,
    finish_documents,
    link_chunks,
    put_chunk_vectors,
    put_chunks,
    put_document,
    unlink_chunks,
)
from hgmem.graph.entities import (
    entity_contributions,
    give_entities,
    give_relations,
    relation_contributions,
    touch_entities,
    touch_relations,
)
from hgmem.graph.values import Runner, to_json
from hgmem.identity import text_hash
from hgmem.inputs import Document, Given
from hgmem.model import Chunk
from hgmem.services import Services, check_dimensions, open_corpus

GIVEN = "given"  # how a document was cut whose chunks came with it


def add_graph(services: Services, given: Given) -> None:
    """Write a ready-made graph into the corpus; what is there already is not written twice."""
    prepared = prepare(given, corpus=services.corpus)
    check_dimensions(services, open_corpus(services))
    _put_documents(services, embedding(services), prepared)
    for entities in batches(prepared.entities.items()):
        services.database.write(_add_entities, services, entities)
    for relations in batches(prepared.relations.items()):
        services.database.write(_add_relations, services, relations)
    embed_missing(
        services,
        entities=[entity_row(services.corpus, key, ()).uid for key in prepared.entities],
        relations=[relation_row(services.corpus, ends, ()).uid for ends in prepared.relations],
    )


def _put_documents(services: Services, database: Runner, prepared: Prepared) -> None:
    """Write, through `database`, the documents with their chunks and vectors."""
    fresh: list[Chunk] = []
    touched: list[str] = []
    for uid, document in prepared.documents.items():
        found = _put_document(services, database, (uid, document), prepared.chunks.get(uid, ()))
        if found is not None:
            fresh += found
            touched.append(uid)
    for batch in batches(fresh):
        uids = [chunk.uid for chunk in batch]
        vectors = services.embed([chunk.text for chunk in batch], kind="document")
        put_chunk_vectors(database, corpus=services.corpus, uids=uids, vectors=vectors)
        finish_chunks(database, corpus=services.corpus, uids=uids)
    for uids in batches(touched):
        finish_documents(database, corpus=services.corpus, uids=uids)


def _put_document(
    services: Services, database: Runner, known: tuple[str, Document], chunks: Sequence[Chunk]
) -> list[Chunk] | None:
    """Return the chunks that are not done yet, once they are written; None for a document that is."""
    corpus, (uid, document) = services.corpus, known
    state = document_states(database, corpus=corpus, uids=[uid]).get(uid)
    stored = chunks_of_document(database, corpus=corpus, document=uid)
    fresh = [chunk for chunk in chunks if stored.get(chunk.uid) != "done"]
    if state is not None and state.status == "done" and not fresh and _described(state) == properties_of(document):
        return None
    put_document(database, corpus=corpus, uid=uid, properties=properties_of(document))
    for batch in batches(chunks):  # those that are done too: their positions may be others now
        put_chunks(database, corpus=corpus, document=uid, chunks=batch)
    unlink_chunks(database, corpus=corpus, document=uid)
    link_chunks(database, corpus=corpus, document=uid)
    return fresh


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


def _add_entities(
    transaction: Transaction, services: Services, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]
) -> None:
    corpus = services.corpus
    rows = {entity_row(corpus, key, chunks_of(said)): said for key, said in batch}
    said = {row.uid: contributions for row, contributions in rows.items()}
    touch_entities(transaction, corpus=corpus, rows=rows)
    stored = {
        inputs.uid: load_entities(inputs.given)
        for inputs in entity_contributions(transaction, corpus=corpus, uids=list(said))
    }
    give_entities(transaction, corpus=corpus, given=_united(stored, said))
    rebuild_entities(transaction, services, list(said))


def _add_relations(
    transaction: Transaction,
    services: Services,
    batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]],
) -> None:
    corpus = services.corpus
    rows = {relation_row(corpus, ends, chunks_of(said)): said for ends, said in batch}
    said = {row.uid: contributions for row, contributions in rows.items()}
    touch_relations(transaction, corpus=corpus, rows=rows)
    stored = {
        inputs.uid: load_relations(inputs.given)
        for inputs in relation_contributions(transaction, corpus=corpus, uids=list(said))
    }
    give_relations(transaction, corpus=corpus, given=_united(stored, said))
    rebuild_relations(transaction, services, list(said))


def _united(stored: Mapping[str, Sequence[Contribution]], said: Mapping[str, Sequence[Contribution]]) -> dict[str, str]:
    """Return the JSON of what was given before and what is given now, each once, for those that gained something."""
    united: dict[str, str] = {}
    for uid in said:
        contributions = list(dict.fromkeys([*stored[uid], *said[uid]]))
        if len(contributions) > len(stored[uid]):
            united[uid] = dump(contributions)
    return united
