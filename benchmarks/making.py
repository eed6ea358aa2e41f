"""The shared graph of the benchmarks, made once: of a LightRAG directory, or of this repository's own documents.

The real embedder makes the vectors. Without a LightRAG directory, the extractive model indexes the documents; texts,
entities, relations and their vectors are then read back from Neo4j.
"""

import hashlib
from pathlib import Path
from typing import Any

import graphs
import numpy as np
from kept import ROOT
from running import access, read_questions, running

from hgmem import Document, HGMem
from hgmem.corpus.adding import Prepared, prepare
from hgmem.extraction.contributions import entity_fields, entity_text, relation_fields, relation_text
from hgmem.graph.full_text import MOST_TERMS
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.models.embedding import Embedder
from hgmem.sources.lightrag import read_lightrag
from hgmem.text.identity import key
from hgmem.text.stems import searched_stems

NOVEL = {"entities": 1_279, "relations": 1_791, "chunks": 754}  # the graph that the questions are about
LIMIT = 2_000  # characters of a description, the default of HGMEM_DESCRIPTION_CHARACTERS
MOST = 50  # queries drawn from relations
CORPUS = "own"
ASKED = 30  # headings
SOURCES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md", "docs/decisions/*.md")
CHUNKS = """
MATCH (c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT]->(d)
RETURN c.uid AS id, d.title AS document, c.position AS position, c.text AS text, c.tokens AS tokens,
       c.embedding AS vector
ORDER BY document, position
"""
ENTITIES = """
MATCH (e:Entity {corpus: $corpus, memory: ''})
RETURN e.name AS name, e.type AS type, e.description AS description, e.embedding AS vector,
       COLLECT { MATCH (e)-[:FROM_CHUNK]->(c) RETURN c.uid ORDER BY c.uid } AS chunks
ORDER BY name
"""
RELATIONS = """
MATCH (a:Entity {corpus: $corpus, memory: ''})-[r:RELATES {corpus: $corpus, memory: ''}]->(b)
RETURN a.name AS source, b.name AS target, r.description AS description, r.keywords AS keywords, r.weight AS weight,
       r.chunks AS chunks, r.embedding AS vector
ORDER BY source, target
"""


def made(lightrag: Path, folder: Path) -> Path:
    """Return the folder of a LightRAG directory's graph; make it if it is missing."""
    digest = hashlib.sha256(graphs.FORMAT)
    for path in sorted(lightrag.iterdir()):
        digest.update(path.read_bytes())
    target = folder / digest.hexdigest()[:16]
    if not (target / "vectors.npz").exists():
        graphs.save(target, *_graph(lightrag))
    return target


def _graph(lightrag: Path) -> tuple[graphs.Graph, list[graphs.Query]]:
    prepared = prepare(read_lightrag(lightrag), corpus="made")
    chunks = _chunks(prepared)
    ids = {chunk.uid: chunk.source_id for cut in prepared.chunks.values() for chunk in cut}
    entities = _entities(prepared, ids)
    names = {key(one["name"]): one["name"] for one in entities}
    relations = _relations(prepared, ids, names)
    texts = {
        "entities": [entity_text(one["name"], one["description"]) for one in entities],
        "relations": [relation_text(_ends(one), one["description"], one["keywords"]) for one in relations],
        "chunks": [one["text"] for one in chunks],
    }
    embedder = SentenceTransformerEmbedder()
    vectors = {kind: embedder.embed(of, kind="document") for kind, of in texts.items()}
    graph = graphs.Graph(chunks=chunks, entities=entities, relations=relations, vectors=vectors)
    counts = {kind: len(getattr(graph, kind)) for kind in graphs.KINDS}
    return graph, sub_queries(read_questions() if counts == NOVEL else [], relations, embedder)


def sub_queries(asked: list[str], relations: list[dict[str, Any]], embedder: Embedder) -> list[graphs.Query]:
    """Return the questions and relations' descriptions as sub-queries with their words and vectors."""
    texts = asked + [one["description"] for one in relations[:: max(1, len(relations) // MOST)]]
    vectors = embedder.embed(texts, kind="query")
    return [
        graphs.Query(text=text, words=tuple(searched_stems(text, "", most=MOST_TERMS)), vector=vector)
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _chunks(prepared: Prepared) -> list[dict[str, Any]]:
    return [
        {
            "id": chunk.source_id,
            "document": prepared.documents[chunk.document].id,
            "position": chunk.position,
            "text": chunk.text,
            "tokens": chunk.tokens,
        }
        for cut in prepared.chunks.values()
        for chunk in cut
    ]


def _entities(prepared: Prepared, ids: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for said in prepared.entities.values():
        fields = entity_fields(said, limit=LIMIT)
        chunks = dict.fromkeys(ids[uid] for one in said for uid in one.chunks)
        found.append(
            {
                "name": fields.name,
                "type": fields.type,
                "description": line(fields.description.text),
                "chunks": list(chunks),
            }
        )
    return found


def _relations(prepared: Prepared, ids: dict[str, str], names: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for (source, target), said in prepared.relations.items():
        fields = relation_fields(said, limit=LIMIT)
        chunks = dict.fromkeys(ids[uid] for one in said for uid in one.chunks)
        found.append(
            {
                "source": names[source],
                "target": names[target],
                "description": line(fields.description.text),
                "keywords": list(fields.keywords),
                "weight": fields.weight,
                "chunks": list(chunks),
            }
        )
    return found


def line(text: str) -> str:
    """Return the text as one line, because line breaks separate contributions."""
    return " ".join(text.split("\n"))


def _ends(relation: dict[str, Any]) -> tuple[str, str]:
    source, target = sorted((key(relation["source"]), key(relation["target"])))
    return source, target


def own(folder: Path) -> Path:
    """Return the folder of the graph's files; make them if they are missing."""
    texts = documents()
    said = "\n".join(f"{title}\n{text}" for title, text in texts.items())
    digest = hashlib.sha256(graphs.FORMAT + said.encode())
    target = folder / f"own-{digest.hexdigest()[:16]}"
    if not (target / "vectors.npz").exists():
        embedder = SentenceTransformerEmbedder()
        graph = _indexed(texts, embedder)
        graphs.save(target, graph, sub_queries(headings(texts), graph.relations, embedder))
    return target


def documents() -> dict[str, str]:
    """Return the texts of the repository's documents by path."""
    paths = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def headings(texts: dict[str, str]) -> list[str]:
    """Return the headings of the documents' sections: the questions of this graph."""
    found = (said.lstrip("# ").strip() for text in texts.values() for said in text.splitlines() if said.startswith("#"))
    return list(dict.fromkeys(said for said in found if len(said.split()) > 1))[:ASKED]


def _indexed(texts: dict[str, str], embedder: SentenceTransformerEmbedder) -> graphs.Graph:
    with running() as (server, _):
        opened = HGMem.open(CORPUS, embedder=embedder, model="extractive", **access(server))
        with opened as client:
            client.add([Document(id=title, title=title, text=text) for title, text in texts.items()])
            driver = client._database._driver
            rows = {
                kind: [record.data() for record in driver.execute_query(query, corpus=CORPUS).records]
                for kind, query in (("chunks", CHUNKS), ("entities", ENTITIES), ("relations", RELATIONS))
            }
    vectors = {kind: np.asarray([one.pop("vector") for one in of], dtype=np.float32) for kind, of in rows.items()}
    for one in (*rows["entities"], *rows["relations"]):
        one["description"] = line(one["description"]) or one.get("name") or f"{one['source']} and {one['target']}"
    return graphs.Graph(**rows, vectors=vectors)
