"""User text as a full-text query: words only, so that no character of it is Lucene's."""

import re
from collections.abc import Sequence

from hgmem.identity import corpus_key
from hgmem.text import words

MOST_TERMS = 64
MOST_DOCUMENTS = 500  # that a query names; Lucene takes 1,024 clauses
LONGEST_TERM = 100
_TERM = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """Return the words of a text that a query may hold, each once."""
    parts = (part for word in words(text) for part in _TERM.findall(word))
    return list(dict.fromkeys(part for part in parts if len(part) <= LONGEST_TERM))[:MOST_TERMS]


def lucene(wanted: Sequence[str], *, corpus: str, documents: Sequence[str] | None = None) -> str:
    """Return a query for any of the terms within one corpus, or `''` where there is none.

    `documents` (uids), if there are not too many, are all that it finds anything in.
    """
    if not wanted:
        return ""
    within = f"+corpus_key:{corpus_key(corpus)}^0"
    if documents is not None and 0 < len(documents) <= MOST_DOCUMENTS:
        within += f" +({' '.join(f'document:{uid}' for uid in documents)})^0"
    return f"{within} +({' '.join(f'text:{term}' for term in wanted)})"  # after a field's name, and/or/not are words
