"""The shared graph of the benchmarks: a LightRAG directory with vectors made once by the real embedder."""

import hashlib
from pathlib import Path
from typing import Any

import graphs

from hgmem.corpus.adding import Prepared, prepare
from hgmem.extraction.contributions import entity_fields, entity_text, relation_fields, relation_text
from hgmem.graph.retrieval import telling, terms
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.models.embedding import Embedder
from hgmem.sources.lightrag import read
from hgmem.text.identity import key

QUESTIONS = Path(__file__).with_name("questions.txt")
NOVEL = {"entities": 1_279, "relations": 1_791, "chunks": 754}  # the graph that the questions are about
LIMIT = 2_000  # characters of a description, the default of HGMEM_DESCRIPTION_CHARACTERS
MOST = 50  # queries drawn from relations


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
    prepared = prepare(read(lightrag), corpus="made")
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
    return graph, sub_queries(questions() if counts == NOVEL else [], relations, embedder)


def questions() -> list[str]:
    """Return the questions on the novel."""
    return [said for said in QUESTIONS.read_text(encoding="utf-8").splitlines() if said.strip()]


def sub_queries(asked: list[str], relations: list[dict[str, Any]], embedder: Embedder) -> list[graphs.Query]:
    """Return the questions and relations' descriptions as sub-queries with their words and vectors."""
    texts = asked + [one["description"] for one in relations[:: max(1, len(relations) // MOST)]]
    vectors = embedder.embed(texts, kind="query")
    return [
        graphs.Query(text=text, words=tuple(telling(terms(text))), vector=vector)
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
