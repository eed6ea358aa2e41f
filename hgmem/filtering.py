"""Filters: which documents a question draws on, by title, source or metadata."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.errors import UsageError
from hgmem.graph.database import Database
from hgmem.graph.documents import described_documents
from hgmem.inputs import Scalar

OWN = {"document": "uid", "title": "title", "source": "source"}  # names that every document has, and its properties
NAMED = 20  # names that an error lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The documents (uids) that count, None for all of them; `narrow` if they are less than half."""

    documents: tuple[str, ...] | None = None
    narrow: bool = False


def normal(filters: object) -> dict[str, tuple[str, ...]]:
    """Return filters as the texts that are wanted by name: any of them will do, and every name has to fit."""
    if not isinstance(filters, Mapping):
        raise UsageError('filters= maps names to values, such as {"source": "report.pdf"}')
    return {_name(name): _texts(name, value) for name, value in filters.items()}


def choose(database: Database, filters: Mapping[str, Sequence[str]], *, corpus: str) -> Choice:
    """Return the documents that fit; `UsageError` for a name that no document of the corpus has."""
    if not filters:
        return Choice()
    rows = described_documents(database, corpus=corpus)
    said = {row["uid"]: _said(row) for row in rows}
    known = set(OWN).union(*said.values())
    unknown = [name for name in filters if name not in known]
    if unknown and rows:
        named = ", ".join(sorted(known)[:NAMED])
        raise UsageError(f"no document of corpus {corpus!r} has {unknown[0]!r} to choose it by: there are {named}")
    documents = tuple(uid for uid, one in said.items() if _chosen(one, filters))
    return Choice(documents=documents, narrow=2 * len(documents) < len(rows))


def misfit(filters: Mapping[str, Sequence[str]], *, corpus: str) -> str:
    """Return the note for filters that leave no document."""
    wanted = " and ".join(f"{name} {' or '.join(map(repr, texts))}" for name, texts in filters.items())
    return f"no document of corpus {corpus!r} has {wanted}"


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"{name!r} is no name to choose documents by")
    return name.strip()


def _texts(name: object, value: object) -> tuple[str, ...]:
    many = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    texts = {_text(one) for one in many if isinstance(one, str | int | float)}
    if not many or not all(isinstance(one, str | int | float) for one in many):
        raise UsageError(f"filter {name!r} wants text, a number, true or false, or several of them, not {value!r}")
    return tuple(sorted(texts))


def _text(value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _said(row: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the texts that a document has by name; what it calls its source itself counts beside where it is from."""
    metadata = json.loads(row["metadata"] or "{}")
    said = {name: {row[property_] or ""} for name, property_ in OWN.items()}
    for name, value in metadata.items():
        said.setdefault(name, set()).add(_text(value))
    return said


def _chosen(said: Mapping[str, set[str]], filters: Mapping[str, Sequence[str]]) -> bool:
    return all(_fits(said.get(name, set()), wanted) for name, wanted in filters.items())


def _fits(said: set[str], wanted: Sequence[str]) -> bool:
    return any(_alike(one, text) for one in wanted for text in said)


def _alike(wanted: str, text: str) -> bool:
    """Whether a text is the one that is wanted, `*` in it standing for anything."""
    if "*" not in wanted:
        return wanted == text
    return re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", wanted))), text, re.DOTALL) is not None
