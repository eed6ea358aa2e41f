"""The walk without a language model: titles by headings and key phrases, ways by nearness, enough by coverage."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.extractive.question_aspects import aspects
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.text.segmentation import collapse, headings, sentences

_PHRASES, _LONGEST = 4, 90  # key phrases of a title, and its characters
_SHORT = 60  # characters of a text that is its own title
_SUMMARY = 6  # sentences of a summary


def title(text: str) -> str:
    """Return the first heading of a passage with its key phrases, else these alone."""
    heading = next((collapse(text[start:end].lstrip("# ")) for start, end in islice(headings(text), 1)), "")
    phrases = ", ".join(key_phrases(text, limit=_PHRASES, repeated=False))
    found = ": ".join(part for part in (heading, phrases) if part) or collapse(text)[:_SHORT]
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST].rsplit(' ', 1)[0]} …"


def uncovered(question: str, texts: Sequence[str], *, names_alone: bool = False) -> list[str]:
    """Return the names and key phrases of a question of which no text has all words. Phrases may be left out."""
    held = [frozenset(stems(text)) for text in texts]
    asked = [aspect for aspect in aspects(question) if aspect.name or not names_alone]
    return [aspect.text for aspect in asked if not any(aspect.stems <= each for each in held)]


def nearest(wanted: str, options: Sequence[tuple[str, float]], vectors: VectorCache) -> int:
    """Return the number of the option (its words, and how near what is there is) that is nearest to what is wanted."""
    near = vectors.of([text for text, _ in options]) @ vectors.of([wanted], kind="query")[0]
    return int(np.argmax(np.maximum(near, [score for _, score in options])))


def near_sentences(question: str, text: str, vectors: VectorCache) -> str:
    """Return the sentences of a passage that are nearest to a question, in their order."""
    found = [collapse(text[start:end]) for start, end in sentences(text)]
    if len(found) <= _SUMMARY:
        return collapse(text)
    near = vectors.of(found) @ vectors.of([question], kind="query")[0]
    return " ".join(found[at] for at in sorted(np.argsort(-near, kind="stable")[:_SUMMARY].tolist()))
