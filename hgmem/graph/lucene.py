"""User text as a full-text query: words only, so that no character of it is Lucene's."""

from hgmem.identity import corpus_key
from hgmem.text import words

MOST_TERMS = 64
LONGEST_TERM = 100


def lucene(text: str, *, corpus: str) -> str:
    """Return a query for any of the text's words within one corpus, or `''` where there is no word."""
    terms = list(dict.fromkeys(word for word in words(text) if word.isalnum() and len(word) <= LONGEST_TERM))
    if not terms:
        return ""
    wanted = " ".join(f"text:{term}" for term in terms[:MOST_TERMS])  # after a field's name, and/or/not are words
    return f"+corpus_key:{corpus_key(corpus)}^0 +({wanted})"
