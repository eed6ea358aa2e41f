"""Queries for the full-text index."""

from collections.abc import Sequence

MOST_TERMS = 64
MOST_DOCUMENTS = 500  # documents that a query can name: Lucene accepts 1,024 clauses


def lucene(stems: Sequence[str], *, layer: str, documents: Sequence[str] | None = None) -> str:
    """Return a query for any of the stems within one layer (a `layer_key`), or `''` without stems.

    `documents` (uids) restricts it to these documents, unless there are more than `MOST_DOCUMENTS`. Stems have no
    character of Lucene's syntax, and the field's name makes and/or/not plain words.
    """
    if not stems:
        return ""
    within = f"+layer_key:{layer}^0"
    if documents is not None and 0 < len(documents) <= MOST_DOCUMENTS:
        within += f" +({' '.join(f'document:{uid}' for uid in documents)})^0"
    return f"{within} +({' '.join(f'stems:{stem}' for stem in stems)})"
