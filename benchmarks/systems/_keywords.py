"""A relation's keywords for systems that store them as one text."""

from collections.abc import Sequence


def joined(keywords: str | Sequence[str]) -> str:
    """Return the keywords joined by commas; a text is returned unchanged."""
    return keywords if isinstance(keywords, str) else ",".join(keywords)
