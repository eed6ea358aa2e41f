"""LightRAG within the process, with its default file storages: one workspace per corpus.

Differences: everything is in RAM, and every vector is compared. An entity or relation keeps one of its chunks. Each
found entity brings all its relations, and each found relation its entities. Sub-queries run concurrently in one thread.
Keywords are passed in, so no language model is called. It has no full-text search, and no filter except the workspace,
so it can't exclude anything.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from graphs import Found, Graph, Query, Step, UnsupportedError
from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc, Tokenizer

from systems._custom import Pieces, given, texts
from systems._loop import Loop

TOP, CHUNKS = 5, 10  # entities and relations per sub-query; chunks that it keeps
BATCH = 512  # texts per embedding call, which looks up their vectors
NONE: dict[str, list[Any]] = {"entities": [], "relationships": [], "chunks": []}


class System:
    """See `serve.Benched`."""

    storages: Mapping[str, str] = {}  # the default ones
    packages = ("lightrag-hku", "nano-vectordb", "networkx")

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Set the folder for files; a corpus is opened on first use."""
        logging.getLogger("lightrag").setLevel(logging.WARNING)
        self._place = place
        self._loop = Loop()
        self._opened: dict[str, LightRAG] = {}
        self._vectors: dict[str, Any] = {}  # of texts during a write, and of sub-queries
        return {name: version(name) for name in self.packages}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that inserts the graph as a custom one."""
        embedded, custom = texts(graph), given(graph)
        self._vectors |= embedded

        def written() -> None:
            rag = self._corpus(corpus, size=graph.vectors["chunks"].shape[1])
            self._loop.run(rag.ainsert_custom_kg(custom))
            for text in embedded:
                self._vectors.pop(text, None)

        return written

    def step(self, step: Step) -> Callable[[], Found]:
        """Return a function that retrieves the contexts of all sub-queries concurrently."""
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
                entities=tuple(sorted({entity["entity_name"] for one in found for entity in one["entities"]})),
                relations=len({(tie["src_id"], tie["tgt_id"]) for one in found for tie in one["relationships"]}),
                chunks=tuple(dict.fromkeys(chunk["file_path"] for one in found for chunk in one["chunks"])),
            )

        return retrieve

    def close(self) -> None:
        """Write unsaved data and close."""
        for rag in self._opened.values():
            self._loop.run(rag.finalize_storages())
        self._loop.close()

    def _named(self, query: Query) -> str:
        """Store a sub-query's vector; return its text with a digest that separates equal texts with other vectors."""
        text = f"{query.text} {_digest(query.vector.tobytes())}"
        self._vectors[text] = query.vector
        return text

    def _corpus(self, corpus: str, *, size: int) -> LightRAG:
        if corpus not in self._opened:
            rag = LightRAG(
                working_dir=self._place["folder"],
                workspace=f"w{_digest(corpus.encode())}",
                embedding_func=EmbeddingFunc(embedding_dim=size, func=_lookup(self._vectors)),
                llm_model_func=_nobody,
                tokenizer=Tokenizer("pieces", Pieces()),
                embedding_batch_num=BATCH,
                vector_db_storage_cls_kwargs={"cosine_better_than_threshold": -1.0},  # the nearest at any distance
                **self.storages,
            )
            self._loop.run(rag.initialize_storages())
            self._opened[corpus] = rag
        return self._opened[corpus]


def _param(text: str) -> QueryParam:
    return QueryParam(
        mode="mix", only_need_context=True, enable_rerank=False,  # mix is its default: entities, relations and chunks
        ll_keywords=[text], hl_keywords=[text], top_k=TOP, chunk_top_k=CHUNKS,
    )  # fmt: skip


def _lookup(vectors: Mapping[str, Any]) -> Callable[..., Any]:
    async def look_up(texts: list[str], **_: Any) -> Any:
        return np.asarray([vectors[text] for text in texts])

    return look_up


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


async def _nobody(*_: Any, **__: Any) -> str:
    raise UnsupportedError("a language model was asked for")
