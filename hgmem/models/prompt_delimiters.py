"""Prompt delimiters: tags around data in prompts, which that data can neither open nor close."""

import re

TAGS = (
    "answer",
    "chunk",
    "concern",
    "descriptions",
    "documents",
    "entities",
    "evidence",
    "found",
    "memory",
    "name",
    "parts",
    "passage",
    "passages",
    "point",
    "points",
    "question",
    "relations",
    "subqueries",
    "subquery",
    "text",
    "title",
    "types",
)
"""The names of all delimiter tags."""

_OURS = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def quoted(text: str) -> str:
    """Return `text` with the `<` of every delimiter tag replaced by `‹` and NULs removed."""
    return _OURS.sub("‹", text.replace("\0", ""))
