"""Prompt delimiters: tags around data in prompts, which that data can neither open nor close."""

import re

TAGS = (
    "answer",
    "chunk",
    "concern",
    "descriptions",
    "documents",
    "earlier",
    "entities",
    "episode",
    "episodes",
    "evidence",
    "facts",
    "found",
    "history",
    "memory",
    "message",
    "messages",
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
    "topic",
    "topics",
    "types",
    "ways",
)
"""The names of all delimiter tags."""

_OURS = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def quoted(text: str) -> str:
    """Return `text` with the `<` of every delimiter tag replaced by `‹` and NULs removed."""
    return _OURS.sub("‹", text.replace("\0", ""))
