"""Extract entities and relations from one chunk, glean what was missed, and save what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.corpus.aggregation import ENTITY, RELATION, refresh, rows_of
from hgmem.corpus.documents import withdraw_support
from hgmem.corpus.guarded_writes import check_embedder, embedding
from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.extraction.contributions import entities_of, new_in
from hgmem.extraction.replies import Extraction
from hgmem.extraction.tasks import Extract, Glean
from hgmem.graph.database import Transaction
from hgmem.graph.documents import OpenChunk, chunk_texts, embed_chunks, lock_chunks, save_extractions
from hgmem.models.embedding import Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm import LanguageModel
from hgmem.models.llm.task_routing import serving
from hgmem.services import Services
from hgmem.text.segmentation import words
from hgmem.values.graph_elements import EntityUid, RelationUid

FEW_WORDS = 5  # shorter texts may name no entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """One chunk's extraction, and the error that ended gleaning early, if any."""

    extraction: Extraction
    error: str = ""


def is_language_model(model: LanguageModel) -> bool:
    """Return whether a language model extracts, rather than the built-in rule-based model."""
    return serving(model, Extract.name).name != ExtractiveModel.name


def extracted(services: Services, chunk: OpenChunk) -> Extracted:
    """Return the chunk's extraction, including what gleaning added before it failed.

    Raises `BadReplyError` if the model extracted nothing from a text of at least `FEW_WORDS` words.
    """
    types = services.settings.entity_types
    found = services.reply(Extract(text=chunk.text, title=chunk.title, entity_types=types))
    error = ""
    try:
        for _ in range(services.settings.gleaning):
            task = Glean(text=chunk.text, title=chunk.title, entity_types=types, found=found)
            more = new_in(services.reply(task), found)
            if not more.entities and not more.relations:
                break
            found = Extraction(
                entities=(*found.entities, *more.entities), relations=(*found.relations, *more.relations)
            )
    except (AccessError, BudgetError):
        raise  # the run ends; the next one reads the extraction from the response cache and gleans again
    except ModelError as failed:
        error = str(failed)
    if not entities_of(found) and is_language_model(services.model) and _says_something(chunk.text):
        raise BadReplyError("the extraction is empty", task=Extract.name)
    return Extracted(extraction=found, error=error)


def _says_something(text: str) -> bool:
    return sum(any(map(str.isalpha, word)) for word in words(text)) >= FEW_WORDS


def save_texts(services: Services, chunks: Sequence[OpenChunk]) -> None:
    """Store the vectors of chunks that get no extraction."""
    texts = {chunk.uid: chunk.text for chunk in chunks}
    vectors = services.embed(list(texts.values()), kind="document")
    embed_chunks(embedding(services), corpus=services.corpus, texts=texts, vectors=vectors)


def save(services: Services, chunks: Sequence[OpenChunk], found: Mapping[str, Extraction]) -> dict[str, Extraction]:
    """Store the extractions, and return what is stored for these chunks now.

    Another run may have stored its own extraction first, or deleted or changed a chunk.
    """
    outdated = [chunk for chunk in chunks if chunk.outdated and chunk.uid in found]
    others = [chunk for chunk in chunks if not chunk.outdated and chunk.uid in found]
    stored = {}
    if others:
        vectors = services.embed([chunk.text for chunk in others], kind="document")
        written = {chunk.uid: (chunk.text, found[chunk.uid].model_dump_json()) for chunk in others}
        stored = save_extractions(embedding(services), corpus=services.corpus, extractions=written, vectors=vectors)
    if outdated:
        vectors = services.embed([chunk.text for chunk in outdated], kind="document")
        again, entities, relations = services.database.write(_save_again, services, outdated, (found, vectors))
        refresh(services, entities, relations)
        stored |= again
    return {chunk: Extraction.model_validate_json(text) for chunk, text in stored.items()}


def _save_again(
    transaction: Transaction,
    services: Services,
    chunks: Sequence[OpenChunk],
    results: tuple[Mapping[str, Extraction], Vectors],
) -> tuple[dict[str, str], list[EntityUid], list[RelationUid]]:
    """Replace extractions of shorter texts, and take back what they alone contributed.

    Returns what is stored, and the entities and relations to refresh.
    """
    corpus, (found, vectors) = services.corpus, results
    check_embedder(transaction, services)
    lock_chunks(transaction, corpus=corpus, uids=[chunk.uid for chunk in chunks])
    texts = chunk_texts(transaction, corpus=corpus, uids=[chunk.uid for chunk in chunks])
    kept = {}
    for chunk in chunks:
        now = texts.get(chunk.uid)
        if now is not None and now.text == chunk.text and now.status not in ("extracted", "done"):
            again = {chunk.uid: found[chunk.uid]}
            entities, relations = ([row["uid"] for row in rows_of(corpus, kind, again)] for kind in (ENTITY, RELATION))
            kept[chunk.uid] = entities, relations
    stale = withdraw_support(transaction, corpus=corpus, kept=kept)
    written = {chunk.uid: (chunk.text, found[chunk.uid].model_dump_json()) for chunk in chunks}
    return save_extractions(transaction, corpus=corpus, extractions=written, vectors=vectors), *stale
