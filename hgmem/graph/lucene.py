"""User text as a full-text query: words only, so that no character of it is Lucene's."""

import re

from hgmem.identity import corpus_key
from hgmem.text import words

MOST_TERMS = 64
LONGEST_TERM = 100
_TERM = re.compile(r"[^\W_]+")


def lucene(text: str, *, corpus: str) -> str:
    """Return a query for any of the text's words within one corpus, or `''` where there is no word."""
    parts = (part for word in words(text) for part in _TERM.findall(word))
    terms = list(dict.fromkeys(part for part in parts if len(part) <= LONGEST_TERM))
    if not terms:
        return ""
    wanted = " ".join(f"text:{term}" for term in terms[:MOST_TERMS])  # after a field's name, and/or/not are words
    return f"+corpus_key:{corpus_key(corpus)}^0 +({wanted})"
