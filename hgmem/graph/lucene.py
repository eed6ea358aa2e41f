"""Queries for the full-text index."""

from collections.abc import Sequence

MOST_TERMS = 64
MOST_DOCUMENTS = 500  # documents that a query can name: Lucene accepts 1,024 clauses


def lucene(stems: Sequence[str]) -> str:
    """Return the end of a query for any of the stems, or `''` without stems.

    Stems have no character of Lucene's syntax, and the field's name makes and/or/not plain words.
    """
    return f"+({' '.join(f'stems:{stem}' for stem in stems)})" if stems else ""


def beginnings(layer: str, documents: Sequence[str] | None = None) -> list[str]:
    """Return the beginnings of queries that together search one layer (a `layer_key`), in these documents (uids) alone.

    Each names `MOST_DOCUMENTS` at most. They don't change what the index thinks of a hit.
    """
    within = f"+layer_key:{layer}^0 "
    if documents is None:
        return [within]
    parts = (documents[at : at + MOST_DOCUMENTS] for at in range(0, len(documents), MOST_DOCUMENTS))
    return [f"{within}+({' '.join(f'document:{uid}' for uid in part)})^0 " for part in parts]
