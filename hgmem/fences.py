"""Fences: what a prompt shows as data stands between tags of ours, and nothing inside can close or open one."""

import re

TAGS = (
    "answer",
    "chunk",
    "concern",
    "descriptions",
    "entities",
    "evidence",
    "found",
    "memory",
    "name",
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
"""Every tag that a prompt fences data with."""

_OURS = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def quoted(text: str) -> str:
    """Return `text` for between two tags: the `<` of every tag of ours becomes `‹`, NULs go, the rest is verbatim."""
    return _OURS.sub("‹", text.replace("\0", ""))
