"""One chunk's extraction: asked for, gleaned, and refused where the model saw nothing in a text that says something."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.contributions import entities_of, new_in
from hgmem.corpus.holding import embedding
from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.extract import Extract, Extraction, Glean
from hgmem.extractive import ExtractiveModel
from hgmem.graph.documents import OpenChunk, save_extractions
from hgmem.llm import LanguageModel
from hgmem.llm.routing import RoutedModel
from hgmem.services import Services
from hgmem.text import words

FEW_WORDS = 5  # fewer of them may well name nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What was extracted; `error` says why gleaning ended before its time."""

    extraction: Extraction
    error: str = ""


def is_language_model(model: LanguageModel) -> bool:
    """Whether extraction by the model costs something, and may fail to see what is there."""
    serving = model.serving(Extract.name) if isinstance(model, RoutedModel) else model
    return serving.name != ExtractiveModel.name


def extracted(services: Services, chunk: OpenChunk) -> Extracted:
    """Return what the model makes of the chunk; what was extracted stands where gleaning fails."""
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
        raise  # the run ends, and the next one gleans: what was extracted is kept on disk, with the other replies
    except ModelError as failed:
        error = str(failed)
    if not entities_of(found) and is_language_model(services.model) and _says_something(chunk.text):
        raise BadReplyError("the extraction is empty", task=Extract.name)
    return Extracted(extraction=found, error=error)


def _says_something(text: str) -> bool:
    return sum(any(map(str.isalpha, word)) for word in words(text)) >= FEW_WORDS


def save(services: Services, chunks: Sequence[OpenChunk], found: Mapping[str, Extraction]) -> dict[str, Extraction]:
    """Return what is stored of these chunks now: another run may have been first, or deleted some."""
    texts = {chunk.uid: chunk.text for chunk in chunks if chunk.uid in found}
    if not texts:
        return {}
    vectors = services.embed(list(texts.values()), kind="document")
    extractions = {chunk: found[chunk].model_dump_json() for chunk in texts}
    stored = save_extractions(embedding(services), corpus=services.corpus, extractions=extractions, vectors=vectors)
    return {chunk: Extraction.model_validate_json(text) for chunk, text in stored.items()}
