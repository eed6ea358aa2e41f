"""Validate a pre-built graph and resolve its references before anything is written."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from math import inf
from typing import Any, TypeVar

from hgmem.errors import UsageError
from hgmem.extraction.contributions import EntityContribution, RelationContribution, ordered
from hgmem.text.identity import key, text_hash, uid
from hgmem.text.segmentation import collapse, has_half_pair
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A pre-built graph by uids and keys, with ordered contributions."""

    documents: Mapping[str, Document]
    chunks: Mapping[str, tuple[Chunk, ...]]
    entities: Mapping[str, tuple[EntityContribution, ...]]
    relations: Mapping[tuple[str, str], tuple[RelationContribution, ...]]


def prepare(given: Given, *, corpus: str, written: str | None = None) -> Prepared:
    """Return the graph by uid and key.

    `written` is the graph as JSON, if available, for checking its characters. Raises `UsageError` for a duplicate id or
    an unknown reference.
    """
    _check_characters(given, json.dumps(given, ensure_ascii=False, default=_fields) if written is None else written)
    documents = _unique(((document.id, document) for document in given.documents), what="document")
    uids = {id_: uid(corpus, "document", id_) for id_ in documents}
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


def _fields(value: Any) -> Any:
    return {each.name: getattr(value, each.name) for each in fields(value)} if is_dataclass(value) else dict(value)


def _chunks(
    given: Iterable[GivenChunk], *, documents: Mapping[str, Document], corpus: str
) -> dict[str, tuple[Chunk, ...]]:
    found: dict[str, list[Chunk]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for id_, chunk in _unique(((chunk.id, chunk) for chunk in given), what="chunk").items():
        if chunk.document not in documents:
            raise UsageError(
                f"chunk {id_!r} refers to document {chunk.document!r}, which is not in documents=: add the document"
            )
        document = uid(corpus, "document", chunk.document)
        digest = text_hash(chunk.text)
        document_chunks = found.setdefault(document, [])
        document_chunks.append(
            Chunk(
                uid=uid(corpus, "chunk", document, digest, seen[document, digest]),
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
