"""What indexing would do, and what it would cost at most, without writing anything."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hgmem.corpus.extracting import is_language_model
from hgmem.corpus.fold import batches
from hgmem.corpus.writing import DOCUMENTS, bounded, cut, finished
from hgmem.extract import Extract, Glean
from hgmem.graph.corpus import find_corpus
from hgmem.graph.documents import chunks_of_documents, document_states, failed_documents, open_chunks
from hgmem.inputs import Document, Skipped
from hgmem.model import Chunk, Task
from hgmem.prompt import prompt
from hgmem.services import Services, readable_corpus
from hgmem.tokens import count

EXTRACTED = {"extracted", "done"}  # statuses of chunks that need no call


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """What indexing would do. Calls, and the tokens of their replies, are the most that there can be.

    Tokens are estimates. What condensing takes, and calls that are repeated, come on top: nobody knows them before.
    """

    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens_at_most: int = 0


def plan_index(services: Services, items: Iterable[Document | Skipped]) -> IndexPlan:
    """Return what `index` would do with the same items: which documents, how many chunks without an extraction."""
    if find_corpus(services.database, corpus=services.corpus) is not None:
        readable_corpus(services)
    documents = unchanged = chunks = tokens = 0
    for batch in bounded(services.corpus, items, skipped=[]):
        states = document_states(services.database, corpus=services.corpus, uids=list(batch))
        changed = {
            uid: document for uid, document in batch.items() if not finished(services, states.get(uid), document)
        }
        documents += len(changed)
        unchanged += len(batch) - len(changed)
        for uid, document in changed.items():
            waiting = _waiting(services, uid, document)
            chunks += len(waiting)
            tokens += sum(chunk.tokens for chunk in waiting) + count(document.title) * len(waiting)
    return replace(_costs(services, chunks, tokens), documents=documents, unchanged=unchanged)


def plan_retry(services: Services) -> IndexPlan:
    """Return what `retry_failed` would do."""
    readable_corpus(services)
    failed = failed_documents(services.database, corpus=services.corpus)
    waiting = [
        chunk
        for documents in batches(failed, size=DOCUMENTS)
        for chunk in open_chunks(services.database, corpus=services.corpus, documents=documents)
        if not chunk.extraction
    ]
    tokens = sum(count(chunk.text) + count(chunk.title) for chunk in waiting)
    return replace(_costs(services, len(waiting), tokens), documents=len(failed))


def _costs(services: Services, chunks: int, tokens: int) -> IndexPlan:
    """Return what the calls for so many chunks, of so many tokens together, take."""
    per_call = _tokens_around(services) if is_language_model(services.model) else []
    return IndexPlan(
        chunks=chunks,
        calls=chunks * len(per_call),
        prompt_tokens=tokens * len(per_call) + chunks * sum(per_call),
        completion_tokens_at_most=chunks * len(per_call) * services.settings.max_tokens,
    )


def _waiting(services: Services, uid: str, document: Document) -> list[Chunk]:
    """Return the document's chunks that are yet to be extracted."""
    stored = chunks_of_documents(services.database, corpus=services.corpus, documents=[uid]).get(uid, {})
    return [chunk for chunk in cut(services, uid, document) if stored.get(chunk.uid) not in EXTRACTED]


def _tokens_around(services: Services) -> list[int]:
    """Return the tokens of each call's prompt without the chunk: of Extract, and of each round of Glean."""
    types = services.settings.entity_types
    extract, glean = _tokens(Extract(text="", entity_types=types)), _tokens(Glean(text="", entity_types=types))
    return [extract] + [glean] * services.settings.gleaning


def _tokens(task: Task[object]) -> int:
    return sum(count(message.content) for message in prompt(task.name).filled(task.fields()))
