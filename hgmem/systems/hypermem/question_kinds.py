"""The kind of a question by its words (official code: `detect_question_type`, here with words of our own)."""

import re

_KINDS = (
    (
        "temporal",
        re.compile(r"\b(?:when|what (?:date|day|month|year|time)|how (?:long|often)|since|until|before)\b"),
    ),
    ("reasoning", re.compile(r"\b(?:why|how (?:did|does|do|come)|explain|because|reason|cause)\b")),
    ("commonsense", re.compile(r"\b(?:would|could|might|likely|probably|considered|prefer)\b")),
    ("factual", re.compile(r"\b(?:who|whom|whose|which|what|where|how (?:many|much))\b")),
)


def kind_of(question: str) -> str:
    """Return `temporal`, `reasoning`, `commonsense` or `factual`, or an empty text. Questions are read as English."""
    words = question.casefold()
    return next((kind for kind, pattern in _KINDS if pattern.search(words)), "")
