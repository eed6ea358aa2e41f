"""Lucene queries for the words of a text, within one corpus."""

import re
from collections.abc import Sequence

from hgmem.text.identity import corpus_key
from hgmem.text.segmentation import word_set, words

MOST_TERMS = 64
MOST_DOCUMENTS = 500  # documents that a query can name: Lucene accepts 1,024 clauses
LONGEST_TERM = 100
# English function words: they occur in most passages, so they don't help ranking and make searches slow.
FUNCTION_WORDS = word_set(
    "a about after all also am an and any are as at be because been before being but by can could did do does for from "
    "had has have he her hers him his how i if in into is it its just me more most my no nor not of on one only or "
    "other our out over she should so some such than that the their them then there these they this those through to "
    "too under until up us very was we were what when where which while who whom whose why will with would you your"
)
_TERM = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """Return the distinct words of a text that a query may contain."""
    parts = (part for word in words(text) for part in _TERM.findall(word))
    return list(dict.fromkeys(part for part in parts if len(part) <= LONGEST_TERM))[:MOST_TERMS]


def telling(wanted: Sequence[str]) -> list[str]:
    """Return the terms without function words, or all terms if nothing else is left."""
    return [term for term in wanted if term not in FUNCTION_WORDS] or list(wanted)


def lucene(wanted: Sequence[str], *, corpus: str, layer: str = "", documents: Sequence[str] | None = None) -> str:
    """Return a query for any of the terms within one corpus, or `''` without terms.

    `layer` (a `layer_key`) restricts it to one kind of a system's built rows instead. `documents` (uids) restricts it
    to these documents, unless there are more than `MOST_DOCUMENTS`.
    """
    if not wanted:
        return ""
    within = f"+layer_key:{layer}^0" if layer else f"+corpus_key:{corpus_key(corpus)}^0"
    if documents is not None and 0 < len(documents) <= MOST_DOCUMENTS:
        within += f" +({' '.join(f'document:{uid}' for uid in documents)})^0"
    return f"{within} +({' '.join(f'text:{term}' for term in wanted)})"  # the field name makes and/or/not plain words
