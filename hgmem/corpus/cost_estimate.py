"""Estimate the work and the maximum cost of indexing without writing anything."""

from collections.abc import Iterable, Set
from dataclasses import replace

from hgmem.corpus.documents import DOCUMENTS, ChunkedDocument, bounded, chunked, compared
from hgmem.corpus.indexing import is_language_model
from hgmem.corpus.paging import batches
from hgmem.extraction.tasks import Extract, Glean
from hgmem.graph.corpus import find_corpus
from hgmem.graph.documents import EMBEDDED, failed_documents, open_chunks
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.rendering import heading
from hgmem.services import Services, readable_corpus
from hgmem.text.dates import type_of
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document, Skipped
from hgmem.values.reports import IndexPlan
from hgmem.values.task import Task

EXTRACTED = {"extracted", "done"}  # statuses of chunks that need no call
INDEXED = {*EXTRACTED, EMBEDDED}  # those that need no work without a graph
_DATE = 10  # tokens of a date in a heading


def plan_index(services: Services, items: Iterable[Document | Skipped], *, graph: bool = True) -> IndexPlan:
    """Return the cost estimate of `index` for these items, with or without a graph."""
    if find_corpus(services.database, corpus=services.corpus) is not None:
        readable_corpus(services)
    documents = unchanged = chunks = tokens = 0
    for batch in bounded(services.corpus, items, skipped=[]):
        changed = [document for document in compared(services, batch, graph=graph) if not document.finished]
        documents += len(changed)
        unchanged += len(batch) - len(changed)
        for document in changed:
            waiting = _waiting(chunked(services, document), indexed=EXTRACTED if graph else INDEXED)
            chunks += len(waiting)
            told = count(document.document.title) + count(type_of(document.document.metadata)) + _DATE
            tokens += sum(chunk.tokens for chunk in waiting) + told * len(waiting)
    costs = _costs(services, chunks, tokens) if graph else IndexPlan(chunks=chunks)
    return replace(costs, documents=documents, unchanged=unchanged)


def plan_retry(services: Services) -> IndexPlan:
    """Return the cost estimate of `retry_failed`."""
    readable_corpus(services)
    failed = failed_documents(services.database, corpus=services.corpus)
    waiting = [
        chunk
        for documents in batches(failed, size=DOCUMENTS)
        for chunk in open_chunks(services.database, corpus=services.corpus, documents=documents)
        if not chunk.extraction
    ]
    tokens = sum(count(chunk.text) + count(heading(chunk, place=False)) for chunk in waiting)
    return replace(_costs(services, len(waiting), tokens), documents=len(failed))


def _costs(services: Services, chunks: int, tokens: int) -> IndexPlan:
    per_call = _tokens_around(services) if is_language_model(services.model) else []
    return IndexPlan(
        chunks=chunks,
        calls=chunks * len(per_call),
        prompt_tokens=tokens * len(per_call) + chunks * sum(per_call),
        completion_tokens_at_most=chunks * len(per_call) * services.settings.max_tokens,
    )


def _waiting(chunked: ChunkedDocument, *, indexed: Set[str]) -> list[Chunk]:
    """Return the chunks that are stored with another text, or with a status that is none of `indexed`."""
    rewritten = {chunk.uid for chunk in (*chunked.grown, *chunked.changed)}
    return [
        chunk for chunk in chunked.chunks if chunk.uid in rewritten or chunked.statuses.get(chunk.uid) not in indexed
    ]


def _tokens_around(services: Services) -> list[int]:
    """Return the prompt tokens of each call, without the chunk's text.

    The first call is `Extract`; each gleaning round adds a `Glean`.
    """
    types = services.settings.entity_types
    extract, glean = _tokens(Extract(text="", entity_types=types)), _tokens(Glean(text="", entity_types=types))
    return [extract] + [glean] * services.settings.gleaning


def _tokens(task: Task[object]) -> int:
    return sum(count(message.content) for message in prompt_of(task).filled(task.fields()))
