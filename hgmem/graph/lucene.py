"""Queries for the full-text index: a beginning says where to search, an end for what."""

from collections.abc import Sequence

MOST_TERMS = 64
MOST_DOCUMENTS = 500  # documents that a query can name: Lucene accepts 1,024 clauses


def lucene(stems: Sequence[str]) -> str:
    """Return the end of a query for any of the stems, or `''` without stems.

    Stems have no character of Lucene's syntax, and the field's name makes and/or/not plain words.
    """
    return f"+({' '.join(f'stems:{stem}' for stem in stems)})" if stems else ""


def within(layer: str, documents: Sequence[str] | None = None) -> tuple[str, list[str]]:
    """Return the beginning of a query within one layer (a `layer_key`), and beginnings for parts of these documents.

    The first names the documents (uids), and there are no parts, unless there are more than `MOST_DOCUMENTS`: each part
    names as many at most. Beginnings don't change what the index thinks of a hit.
    """
    whole = f"+layer_key:{layer}^0 "
    named = [
        f"{whole}+({' '.join(f'document:{uid}' for uid in documents[at : at + MOST_DOCUMENTS])})^0 "
        for at in range(0, len(documents or ()), MOST_DOCUMENTS)
        if documents
    ]
    return (named[0], []) if len(named) == 1 else (whole, named)
