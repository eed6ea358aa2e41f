"""Rows that may be averaged: those of one label on one data set differ in question and seed alone."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hgmem.errors import UsageError

_OF_SYSTEMS = ("system", "recipe", "settings")
_OF_QUESTIONS = ("kind", "asked", "reference", "evidence")


def check_alike(rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UsageError` if rows of one label differ in what they were made with, or those of one question in it."""
    known: dict[tuple[str, ...], str] = {}
    for row in rows:
        for what, name, value in _shared(row):
            before = known.setdefault((what, name), value)
            if before != value:
                raise UsageError(
                    f"results of {what} differ in {name} ({_short(before)} and {_short(value)}): report each folder "
                    "alone, or run each plan again with labels and names of data of its own"
                )


def _shared(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what rows have in common: whose results they are, the name of the field, and its value as text."""
    label, question = f"{row['label']!r} on {row['data']!r}", f"question {row['question']!r} of {row['data']!r}"
    yield from ((label, name, _text(row[name])) for name in _OF_SYSTEMS if name in row)
    yield from ((label, name, value) for name, value in row.get("made_with", {}).items())
    yield from ((question, name, _text(row[name])) for name in _OF_QUESTIONS if name in row)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
