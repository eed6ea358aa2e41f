"""LightRAG within the process, with the file storages that it has by default: one workspace a corpus.

What it does otherwise: it is held in memory as a whole and compares every vector; an entity and a relation keep one of
their chunks; each found entity brings all its relations and each found relation its entities; sub-queries go to it one
by one, side by side, in the only thread it has. Keywords are given, so no language model is asked. Words are not
searched. It has no filter but the workspace, so nothing can be left out.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from graphs import Found, Graph, Query, Step, UnsupportedError
from systems._loop import Loop

from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc, Tokenizer, normalize_entity_name, sanitize_text_for_encoding

TOP, CHUNKS = 5, 10  # entities and relations of a sub-query; chunks, as many as a sub-query of the product's brings
BATCH = 512  # texts that are embedded in one call, which looks them up
NONE: dict[str, list[Any]] = {"entities": [], "relationships": [], "chunks": []}


class Pieces:
    """Tokens without a download, as tiktoken's table would be: words, spaces and signs."""

    def encode(self, content: str) -> list[int]:
        """Return one number a piece."""
        return [hash(piece) for piece in re.findall(r"\s?\w+|\s|[^\w\s]", content)]

    def decode(self, tokens: list[int]) -> str:
        """Refuse: what is shortened is cut from the text itself."""
        raise NotImplementedError


class System:
    """See `serve.Benched`."""

    storages: Mapping[str, str] = {}  # the default ones
    packages = ("lightrag-hku", "nano-vectordb", "networkx")

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Say where the files go; a corpus is opened when it is used first."""
        logging.getLogger("lightrag").setLevel(logging.WARNING)
        self._place = place
        self._loop = Loop()
        self._opened: dict[str, LightRAG] = {}
        self._vectors: dict[str, Any] = {}  # of texts that are being written, and of sub-queries
        return {name: version(name) for name in self.packages}

    def write(self, graph: Graph, corpus: str) -> None:
        """Insert the graph as a custom one."""
        texts, given = _texts(graph), _given(graph)
        self._vectors |= texts
        rag = self._corpus(corpus, size=graph.vectors["chunks"].shape[1])
        self._loop.run(rag.ainsert_custom_kg(given))
        for text in texts:
            self._vectors.pop(text, None)

    def step(self, step: Step) -> Callable[[], Found]:
        """Return what asks for the context of each sub-query, all of them at once."""
        if step.local:
            raise UnsupportedError("a query starts from a search of all entities, not from given ones")
        if step.memory:
            raise UnsupportedError("a query has no filter that would leave entities out")
        rag = self._corpus(step.corpus, size=len(step.queries[0].vector))
        asked = [self._named(query) for query in step.queries]

        async def gather() -> list[dict[str, Any]]:
            return await asyncio.gather(*(rag.aquery_data(text, _param(text)) for text in asked))

        def retrieve() -> Found:
            found = [NONE | one["data"] for one in self._loop.run(gather())]
            return Found(
                entities=len({entity["entity_name"] for one in found for entity in one["entities"]}),
                relations=len({(tie["src_id"], tie["tgt_id"]) for one in found for tie in one["relationships"]}),
                chunks=tuple(dict.fromkeys(chunk["file_path"] for one in found for chunk in one["chunks"])),
            )

        return retrieve

    def close(self) -> None:
        """Write what is not written, and end."""
        for rag in self._opened.values():
            self._loop.run(rag.finalize_storages())
        self._loop.close()

    def _named(self, query: Query) -> str:
        """Return the text of a sub-query, told from the same text with another vector, and keep its vector."""
        text = f"{query.text} {hashlib.blake2b(query.vector.tobytes(), digest_size=6).hexdigest()}"
        self._vectors[text] = query.vector
        return text

    def _corpus(self, corpus: str, *, size: int) -> LightRAG:
        if corpus not in self._opened:
            rag = LightRAG(
                working_dir=self._place["folder"],
                workspace=f"w{hashlib.blake2b(corpus.encode(), digest_size=8).hexdigest()}",
                embedding_func=EmbeddingFunc(embedding_dim=size, func=_lookup(self._vectors)),
                llm_model_func=_nobody,
                tokenizer=Tokenizer("pieces", Pieces()),
                embedding_batch_num=BATCH,
                vector_db_storage_cls_kwargs={"cosine_better_than_threshold": -1.0},  # the nearest, however far
                **self.storages,
            )
            self._loop.run(rag.initialize_storages())
            self._opened[corpus] = rag
        return self._opened[corpus]


def _param(text: str) -> QueryParam:
    return QueryParam(
        mode="mix",  # its default: entities, relations and chunks
        only_need_context=True,
        ll_keywords=[text],
        hl_keywords=[text],
        top_k=TOP,
        chunk_top_k=CHUNKS,
        enable_rerank=False,
    )


def _texts(graph: Graph) -> dict[str, Any]:
    """Return the vectors by the texts that LightRAG embeds for them."""
    chunks = [sanitize_text_for_encoding(one["text"]) for one in graph.chunks]
    entities = [f"{normalize_entity_name(one['name'])}\n{one['description']}" for one in graph.entities]
    ties = []
    for one in graph.relations:
        source, target = sorted(normalize_entity_name(one[end]) for end in ("source", "target"))
        ties.append(f"{one['keywords']}\t{source}\n{target}\n{one['description']}")
    kinds = {"chunks": chunks, "entities": entities, "relations": ties}
    return {text: vector for kind, texts in kinds.items() for text, vector in zip(texts, graph.vectors[kind], strict=True)}


def _given(graph: Graph) -> dict[str, Any]:
    """Return the graph as a custom one; what is found names a chunk by its file's path, so that is its id."""
    return {
        "chunks": [
            {"content": one["text"], "source_id": one["id"], "file_path": one["id"], "chunk_order_index": one["position"]}
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
                "keywords": one["keywords"],
                "weight": max(1.0, one["weight"]),
                "source_id": next(iter(one["chunks"]), ""),
            }
            for one in graph.relations
            if normalize_entity_name(one["source"]) != normalize_entity_name(one["target"])  # which it refuses
        ],
    }


def _lookup(vectors: Mapping[str, Any]) -> Callable[..., Any]:
    async def look_up(texts: list[str], **_: Any) -> Any:
        return np.asarray([vectors[text] for text in texts])

    return look_up


async def _nobody(*_: Any, **__: Any) -> str:
    raise UnsupportedError("a language model was asked for")
