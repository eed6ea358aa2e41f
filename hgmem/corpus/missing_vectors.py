"""Embed everything of a corpus and its memories that lacks a vector.

The embedded texts are the same as when the vectors were first written.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hgmem.corpus.aggregation import Report
from hgmem.corpus.paging import CHUNKS, ENTITIES, OWN_RELATIONS, PROVISIONALS, RELATIONS, pages
from hgmem.extraction.contributions import entity_text, own_relation_text, relation_text
from hgmem.graph.built import put_built_vectors
from hgmem.graph.database import Row
from hgmem.graph.documents import put_chunk_vectors
from hgmem.graph.embeddings import (
    count_unembedded,
    missing_built_vectors,
    missing_chunk_vectors,
    missing_own_relation_vectors,
    missing_point_vectors,
    put_point_vectors,
)
from hgmem.graph.entities import (
    missing_entity_vectors,
    missing_relation_vectors,
    put_entity_vectors,
    put_relation_vectors,
)
from hgmem.graph.exporting import built_uids, point_uids
from hgmem.graph.values import Runner
from hgmem.services import Services

BATCH = 128  # texts embedded and stored together: at most this much work is repeated after a kill

# Embeds those of the uids that lack a vector, and returns how many.
Filling: TypeAlias = Callable[[Services, Runner, Sequence[str]], int]


def fill(services: Services, writer: Runner, *, report: Report = lambda _, __: None) -> int:
    """Embed what lacks a vector, and return how many vectors were made.

    `writer` writes each batch in its own transaction. `report` receives the number of vectors made, and the total.
    """
    database, corpus = services.database, services.corpus
    done, total = 0, count_unembedded(database, corpus=corpus)
    report(done, total)
    for listed, filling in FILLINGS:
        if done >= total:
            break
        for uids in pages(database, listed, corpus=corpus, size=BATCH):
            if made := filling(services, writer, uids):
                report(done := done + made, total)
    return done


def _chunks(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_chunk_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([row["text"] for row in rows], kind="document")
        put_chunk_vectors(writer, corpus=services.corpus, uids=[row["uid"] for row in rows], vectors=vectors)
    return len(rows)


def _entities(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_entity_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([entity_text(row["name"], row["description"]) for row in rows], kind="document")
        put_entity_vectors(writer, corpus=services.corpus, rows=rows, vectors=vectors)
    return len(rows)


def _relations(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_relation_vectors(services.database, corpus=services.corpus, uids=uids)
    texts = [relation_text((row["source"], row["target"]), row["description"], row["keywords"]) for row in rows]
    return _put_relations(services, writer, rows, texts)


def _own_relations(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_own_relation_vectors(services.database, corpus=services.corpus, uids=uids)
    texts = [own_relation_text((row["source"], row["target"]), row["description"]) for row in rows]
    return _put_relations(services, writer, rows, texts)


def _put_relations(services: Services, writer: Runner, rows: Sequence[Row], texts: Sequence[str]) -> int:
    if rows:
        vectors = services.embed(texts, kind="document")
        put_relation_vectors(writer, corpus=services.corpus, rows=rows, vectors=vectors)
    return len(rows)


def _points(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_point_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([row["text"] for row in rows], kind="document")
        put_point_vectors(writer, corpus=services.corpus, uids=[row["uid"] for row in rows], vectors=vectors)
    return len(rows)


def _built(services: Services, writer: Runner, uids: Sequence[str]) -> int:
    rows = missing_built_vectors(services.database, corpus=services.corpus, uids=uids)
    if rows:
        vectors = services.embed([row["text"] for row in rows], kind="document")
        filled = [
            {"uid": row["uid"], "own": row["own"], "vector": vector} for row, vector in zip(rows, vectors, strict=True)
        ]
        put_built_vectors(writer, corpus=services.corpus, rows=filled)
    return len(rows)


FILLINGS: Sequence[tuple[Callable[..., list[str]], Filling]] = (
    (CHUNKS, _chunks),
    (ENTITIES, _entities),
    (RELATIONS, _relations),
    (PROVISIONALS, _entities),
    (OWN_RELATIONS, _own_relations),
    (point_uids, _points),
    (built_uids, _built),
)
