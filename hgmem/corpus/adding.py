"""Add a pre-built graph to a corpus that may already have contents.

The graph is one more contribution to each of its entities and relations.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import inf
from typing import Any, TypeVar

from hgmem.corpus.aggregation import ENTITY, RELATION, SEGMENT, Additions, Kind, embed_missing, rebuild
from hgmem.corpus.documents import derived, description_of
from hgmem.corpus.guarded_writes import GuardedWriter, check_embedder, embedding
from hgmem.corpus.paging import batches, filled
from hgmem.errors import ConflictError, UsageError
from hgmem.extraction.contributions import Contribution, EntityContribution, RelationContribution, chunks_of, ordered
from hgmem.graph.builds import ADDED, CHANGED, EXTENDED, mark_builds
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    DocumentState,
    chunk_rows,
    chunks_of_documents,
    document_states,
    document_uid,
    finish_documents,
    link_chunks,
    put_chunks,
    put_documents,
)
from hgmem.graph.values import Runner, in_order, to_json, uids_of
from hgmem.services import Services, check_dimensions, open_corpus, writing_language
from hgmem.text import identity
from hgmem.text.identity import key, text_hash
from hgmem.text.segmentation import collapse, has_half_pair
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk, DocumentUid
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation, Scalar

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A pre-built graph by uids and keys, with ordered contributions."""

    documents: Mapping[DocumentUid, Document]
    chunks: Mapping[DocumentUid, tuple[Chunk, ...]]
    entities: Mapping[str, tuple[EntityContribution, ...]]
    relations: Mapping[tuple[str, str], tuple[RelationContribution, ...]]


def prepare(given: Given, *, corpus: str, written: str | None = None) -> Prepared:
    """Return the graph by uid and key.

    `written` is the graph as JSON, if available, for checking its characters. Raises `UsageError` for a duplicate id or
    an unknown reference.
    """
    _check_characters(given, to_json(given) if written is None else written)
    documents = _unique(((document.id, document) for document in given.documents), what="document")
    uids = {id_: document_uid(corpus, id_) for id_ in documents}
    chunks = _chunks(given.chunks, documents=documents, corpus=corpus)
    chunk_uids = {chunk.source_id: chunk.uid for document_chunks in chunks.values() for chunk in document_chunks}
    keyed = cache(key)  # names repeat as the ends of relations
    entities: dict[str, list[EntityContribution]] = {}
    for entity in given.entities:
        _add(entities, keyed(entity.name), _entity(entity, chunk_uids))
    relations: dict[tuple[str, str], list[RelationContribution]] = {}
    for relation in given.relations:
        contribution = _relation(relation, chunk_uids)
        ends = ordered(keyed(relation.source), keyed(relation.target))
        if ends is None:
            continue
        _add(relations, ends, contribution)
        for name in (relation.source, relation.target):
            if keyed(name) not in entities:
                end = EntityContribution(
                    name=collapse(name), description=contribution.description, chunks=contribution.chunks
                )
                _add(entities, keyed(name), end)
    entities.pop("", None)
    return Prepared(
        documents={uids[id_]: document for id_, document in documents.items()},
        chunks=chunks,
        entities={name: tuple(contributions) for name, contributions in entities.items()},
        relations={ends: tuple(contributions) for ends, contributions in relations.items()},
    )


def _check_characters(given: Given, written: str) -> None:
    """Raise `UsageError` if a text holds an unpaired surrogate, which no database can store."""
    if not has_half_pair(written):
        return
    for things in (given.documents, given.chunks, given.entities, given.relations):
        for thing in things:
            if has_half_pair(json.dumps(asdict(thing), ensure_ascii=False)):
                raise UsageError(f"{thing!r} has an unpaired surrogate, such as \\ud83d: remove it")


def _chunks(
    given: Iterable[GivenChunk], *, documents: Mapping[str, Document], corpus: str
) -> dict[DocumentUid, tuple[Chunk, ...]]:
    found: dict[DocumentUid, list[Chunk]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for id_, chunk in _unique(((chunk.id, chunk) for chunk in given), what="chunk").items():
        if chunk.document not in documents:
            raise UsageError(
                f"chunk {id_!r} refers to document {chunk.document!r}, which is not in documents=: add the document"
            )
        document = document_uid(corpus, chunk.document)
        digest = text_hash(chunk.text)
        document_chunks = found.setdefault(document, [])
        document_chunks.append(
            Chunk(
                uid=identity.uid(corpus, "chunk", document, digest, seen[document, digest]),
                document=document,
                position=len(document_chunks),
                text=chunk.text,
                tokens=count(chunk.text),
                start=_start(chunk, documents[chunk.document]),
                end=None if chunk.start is None else chunk.start + len(chunk.text),
                source_id=id_,
            )
        )
        seen[document, digest] += 1
    return {document: tuple(document_chunks) for document, document_chunks in found.items()}


def _start(chunk: GivenChunk, document: Document) -> int | None:
    start = chunk.start
    if start is not None and document.text and document.text[start : start + len(chunk.text)] != chunk.text:
        raise UsageError(
            f"chunk {chunk.id!r} does not match the text of document {chunk.document!r} at {start}: "
            "correct its text or its start"
        )
    return start


def _entity(entity: GivenEntity, chunks: Mapping[str, str]) -> EntityContribution:
    return EntityContribution(
        name=collapse(entity.name),
        type=entity.type,
        description=entity.description,
        chunks=_resolved(entity.chunks, chunks, what=f"entity {entity.name!r}"),
    )


def _relation(relation: GivenRelation, chunks: Mapping[str, str]) -> RelationContribution:
    what = f"relation {relation.source!r} to {relation.target!r}"
    if not 0 <= relation.weight < inf:
        raise UsageError(f"{what} has invalid weight {relation.weight!r}: use a finite number of at least 0")
    return RelationContribution(
        description=relation.description,
        keywords=relation.keywords,
        weight=relation.weight,
        chunks=_resolved(relation.chunks, chunks, what=what),
    )


def _resolved(ids: Iterable[str], chunks: Mapping[str, str], *, what: str) -> tuple[str, ...]:
    ids = tuple(dict.fromkeys(ids))
    unknown = [id_ for id_ in ids if id_ not in chunks]
    if unknown:
        raise UsageError(f"{what} refers to chunk {unknown[0]!r}, which is not in chunks=: add the chunk")
    return tuple(chunks[id_] for id_ in ids)


def _unique(items: Iterable[tuple[str, T]], *, what: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for id_, item in items:
        if not id_ or id_ in found:
            raise UsageError(f"{what} id {id_!r} is {('a duplicate' if id_ else 'empty')}: give each a unique id")
        found[id_] = item
    return found


def _add(found: dict[K, list[T]], name: K, contribution: T) -> None:
    contributions = found.setdefault(name, [])
    if contribution not in contributions:
        contributions.append(contribution)


GIVEN = "given"  # `Document.chunking` of documents that came with their chunks
DOCUMENTS = 500  # maximum documents per batch
CHUNKS = 5_000  # a batch ends before it exceeds this many chunks


def add_graph(services: Services, given: Given) -> None:
    """Write a pre-built graph into the corpus, skipping what is already stored.

    Raises `UsageError` for an invalid graph, and `ConflictError` if its documents or entities are deleted meanwhile.
    """
    prepared = prepare(given, corpus=services.corpus, written=to_json(given))
    check_dimensions(services, open_corpus(services))
    sizes = {uid: len(chunks) for uid, chunks in prepared.chunks.items()}
    for documents in filled(
        prepared.documents.items(), size=DOCUMENTS, most=CHUNKS, weight=lambda each: sizes.get(each[0], 0)
    ):
        _put_documents(services, prepared, dict(documents))
    entities = [uid for some in batches(prepared.entities.items()) for uid in _add_all(services, ENTITY, some)]
    relations = [uid for some in batches(prepared.relations.items()) for uid in _add_all(services, RELATION, some)]
    embed_missing(services, entities=entities, relations=relations)


def _put_documents(services: Services, prepared: Prepared, documents: Mapping[DocumentUid, Document]) -> None:
    """Write new, changed and unfinished documents with their chunks and vectors."""
    corpus, database, chunks = services.corpus, services.database, prepared.chunks
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
    change = CHANGED if open_.keys() & states.keys() else ADDED
    writer = embedding(services)
    marks = GuardedWriter(database=database, check=lambda at: _check_and_mark(at, services, change))
    language = writing_language(services, (chunk.text for uid in open_ for chunk in chunks.get(uid, ())))
    described = {
        uid: {**properties, **derived(documents[uid], language=language, text=beginning(chunks.get(uid, ())))}
        for uid, properties in open_.items()
    }
    put_documents(marks, corpus=corpus, documents=described)
    for batch in batches((chunk for uid in open_ for chunk in chunks.get(uid, ())), size=SEGMENT):
        fresh = [chunk for chunk in batch if chunk.uid not in done]  # the others may only have new positions
        vectors = services.embed([chunk.text for chunk in fresh], kind="document") if fresh else ()
        named = {chunk.uid: vector for chunk, vector in zip(fresh, vectors, strict=True)}
        rows = chunk_rows(batch, corpus=corpus, language=language)
        put_chunks(writer, corpus=corpus, rows=rows, vectors=named)
    link_chunks(writer, corpus=corpus, documents=list(open_))
    finished = finish_documents(marks, corpus=corpus, uids=list(open_))
    if len(finished) < len(open_):
        raise ConflictError(
            f"{len(open_) - len(finished)} documents of corpus {corpus!r} were deleted during the call or have "
            "chunks that are not indexed: index them, then add the graph again"
        )


def _check_and_mark(transaction: Runner, services: Services, change: str) -> None:
    check_embedder(transaction, services)
    mark_builds(transaction, corpus=services.corpus, change=change)


def _is_whole(state: DocumentState | None, properties: Mapping[str, Scalar], chunks_done: bool) -> bool:
    if state is None or state.status != "done" or not chunks_done:
        return False
    return {**state.description, "sha256": state.sha256, "chunking": state.chunking} == properties


def beginning(chunks: Sequence[Chunk]) -> str:
    """Return the text of the first chunk."""
    return chunks[0].text if chunks else ""


def properties_of(document: Document) -> dict[str, Scalar]:
    """Return the stored properties of a document that came with its chunks."""
    return {
        **description_of(document),
        "sha256": text_hash(document.text),
        "chunking": GIVEN,
    }


def _add_all(services: Services, kind: Kind, batch: Sequence[tuple[Any, Sequence[Contribution]]]) -> list[Any]:
    """Write contributions to entities or relations by key, and return the uids of those without a vector.

    Only new ones are embedded here.
    """
    database, corpus = services.database, services.corpus
    rows = [kind.row(corpus, name, chunks_of(contributions)) for name, contributions in batch]
    given = {row["uid"]: contributions for row, (_, contributions) in zip(rows, batch, strict=True)}
    known = set(uids_of(database, kind.known, corpus=corpus, uids=list(given)))
    texts = {}
    for row, (name, contributions) in zip(rows, batch, strict=True):
        if row["uid"] not in known:
            fields = kind.fields(contributions, limit=services.settings.description_characters)
            texts[row["uid"]] = kind.text(name, fields)
    vectors = services.embed(list(texts.values()), kind="document") if texts else ()
    named = {uid: (texts[uid], vector) for uid, vector in zip(texts, vectors, strict=True)}
    new = Additions(given=given, vectors=named)

    def write(transaction: Transaction) -> list[Any]:
        if new.vectors:  # of what is new
            _check_and_mark(transaction, services, EXTENDED)
        stored = transaction.run(kind.touch, corpus=corpus, rows=in_order(rows))
        if len(stored) < len(rows):
            raise ConflictError(
                f"endpoints of {len(rows) - len(stored)} relations were deleted from corpus {corpus!r} during the "
                "call: add the graph again"
            )
        return rebuild(transaction, services, stored, kind=kind, new=new)

    return database.write(write)
