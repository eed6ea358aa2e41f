"""A graph of this repository's own documents, indexed once by the extractive model, for runs without other data.

Texts, entities, relations and their vectors are read back from Neo4j and saved in the format that every system reads.
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import graphs
import numpy as np
from kept import ROOT
from making import line, sub_queries

from hgmem import Document, HGMem
from hgmem.local import down, up
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.settings import load

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


def own(folder: Path) -> Path:
    """Return the folder of the graph's files; make them if they are missing."""
    texts = documents()
    said = "\n".join(f"{title}\n{text}" for title, text in texts.items())
    digest = hashlib.sha256(graphs.FORMAT + said.encode())
    target = folder / f"own-{digest.hexdigest()[:16]}"
    if not (target / "vectors.npz").exists():
        embedder = SentenceTransformerEmbedder()
        graph = _graph(texts, embedder)
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


def _graph(texts: dict[str, str], embedder: SentenceTransformerEmbedder) -> graphs.Graph:
    with tempfile.TemporaryDirectory(prefix="hgmem-own.") as folder:
        settings = load(data=Path(folder) / "neo4j")
        server = up(settings)
        access: dict[str, Any] = {"uri": server.uri, "username": server.username, "password": server.password}
        try:
            with HGMem.open(CORPUS, embedder=embedder, model="extractive", **access) as client:
                client.add([Document(id=title, title=title, text=text) for title, text in texts.items()])
                driver = client._database._driver
                rows = {
                    kind: [record.data() for record in driver.execute_query(query, corpus=CORPUS).records]
                    for kind, query in (("chunks", CHUNKS), ("entities", ENTITIES), ("relations", RELATIONS))
                }
        finally:
            down(settings)
    vectors = {kind: np.asarray([one.pop("vector") for one in of], dtype=np.float32) for kind, of in rows.items()}
    for one in (*rows["entities"], *rows["relations"]):
        one["description"] = line(one["description"]) or one.get("name") or f"{one['source']} and {one['target']}"
    return graphs.Graph(**rows, vectors=vectors)
