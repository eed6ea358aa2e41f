"""Converts a graph to LightRAG's custom graph, and lists the texts that LightRAG embeds for it."""

import re
from typing import Any

from graphs import Graph
from lightrag.utils import normalize_entity_name, sanitize_text_for_encoding

from systems._keywords import joined


class Pieces:
    """A tokenizer into words, spaces and signs, which needs no download, unlike tiktoken."""

    def encode(self, content: str) -> list[int]:
        """Return one number per piece."""
        return [hash(piece) for piece in re.findall(r"\s?\w+|\s|[^\w\s]", content)]

    def decode(self, tokens: list[int]) -> str:
        """Raise `NotImplementedError`: texts are shortened without tokens."""
        raise NotImplementedError


def texts(graph: Graph) -> dict[str, Any]:
    """Return the vectors by the text that LightRAG embeds for each."""
    chunks = [sanitize_text_for_encoding(one["text"]) for one in graph.chunks]
    entities = [f"{normalize_entity_name(one['name'])}\n{one['description']}" for one in graph.entities]
    ties = []
    for one in graph.relations:
        source, target = sorted(normalize_entity_name(one[end]) for end in ("source", "target"))
        ties.append(f"{joined(one['keywords'])}\t{source}\n{target}\n{one['description']}")
    kinds = {"chunks": chunks, "entities": entities, "relations": ties}
    return {
        text: vector for kind, said in kinds.items() for text, vector in zip(said, graph.vectors[kind], strict=True)
    }


def given(graph: Graph) -> dict[str, Any]:
    """Return the graph as a custom one. Results name a chunk by its file's path, so that path is the chunk's id."""
    return {
        "chunks": [
            {
                "content": one["text"],
                "source_id": one["id"],
                "file_path": one["id"],
                "chunk_order_index": one["position"],
            }
            for one in graph.chunks
        ],
        "entities": [
            {
                "entity_name": one["name"],
                "entity_type": one["type"],
                "description": one["description"],
                "source_id": next(iter(one["chunks"]), ""),
            }
            for one in graph.entities
        ],
        "relationships": [
            {
                "src_id": one["source"],
                "tgt_id": one["target"],
                "description": one["description"],
                "keywords": joined(one["keywords"]),
                "weight": max(1.0, one["weight"]),
                "source_id": next(iter(one["chunks"]), ""),
            }
            for one in graph.relations
            if normalize_entity_name(one["source"]) != normalize_entity_name(one["target"])  # LightRAG refuses loops
        ],
    }
