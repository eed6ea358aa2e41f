"""A relation's keywords for systems that keep them as one text."""

from collections.abc import Sequence


def joined(keywords: str | Sequence[str]) -> str:
    """Return the keywords with commas between them; a text stays as it is."""
    return keywords if isinstance(keywords, str) else ",".join(keywords)
