"""What indexing would do, and what it would cost at most, without writing anything."""

from collections.abc import Iterable
from dataclasses import dataclass

from hgmem.corpus.extracting import is_language_model
from hgmem.corpus.writing import bounded, cut, finished
from hgmem.extract import Extract, Glean
from hgmem.graph.corpus import find_corpus
from hgmem.graph.documents import chunks_of_document, document_states
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
    per_call = _tokens_around(services) if is_language_model(services.model) else None
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
    rounds = len(per_call or ())
    return IndexPlan(
        documents=documents,
        unchanged=unchanged,
        chunks=chunks,
        calls=chunks * rounds,
        prompt_tokens=tokens * rounds + chunks * sum(per_call or ()),
        completion_tokens_at_most=chunks * rounds * services.settings.max_tokens,
    )


def _waiting(services: Services, uid: str, document: Document) -> list[Chunk]:
    """Return the document's chunks that are yet to be extracted."""
    stored = chunks_of_document(services.database, corpus=services.corpus, document=uid)
    return [chunk for chunk in cut(services, uid, document) if stored.get(chunk.uid) not in EXTRACTED]


def _tokens_around(services: Services) -> list[int]:
    """Return the tokens of each call's prompt without the chunk: of Extract, and of each round of Glean."""
    types = services.settings.entity_types
    extract, glean = _tokens(Extract(text="", entity_types=types)), _tokens(Glean(text="", entity_types=types))
    return [extract] + [glean] * services.settings.gleaning


def _tokens(task: Task[object]) -> int:
    return sum(count(message.content) for message in prompt(task.name).filled(task.fields()))
