"""Filters: select the documents to search by title, source or metadata."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.graph.database import Database
from hgmem.values.inputs import Scalar

OWN = ("document", "title", "source")  # names that every document has
NAMED = 20  # names, and values of a name, that an error lists
LONGEST = 60  # characters of such a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selected documents (uids), or None for all. `narrow` is set if they are fewer than half."""

    documents: tuple[str, ...] | None = None
    narrow: bool = False


def normal(filters: object) -> dict[str, tuple[str, ...]]:
    """Return filters in normal form: the accepted texts by name. All names must match, with any one text each."""
    if not isinstance(filters, Mapping):
        raise UsageError('filters= must map names to values, such as {"source": "report.pdf"}')
    found: dict[str, tuple[str, ...]] = {}
    for name, value in filters.items():
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"invalid filter name {name!r}: use a non-empty string")
        found[name.strip()] = _texts(name, value)
    return found


def choose(database: Database, filters: Mapping[str, Sequence[str]], *, corpus: str, required: bool = False) -> Choice:
    """Return the matching documents.

    With `required`, raises `UsageError` if no document matches, or has the name. An empty corpus has nothing to match.
    """
    if not filters:
        return Choice()
    rows = database.run("described_documents", corpus=corpus)
    values = {row["uid"]: _values(row) for row in rows}
    known = {*OWN}.union(*values.values())
    unknown = [name for name in filters if name not in known]
    if required and unknown and rows:
        named = ", ".join(sorted(known)[:NAMED])
        raise UsageError(f"no document of corpus {corpus!r} has the filter name {unknown[0]!r}: choose from {named}")
    documents = tuple(
        uid
        for uid, described in values.items()
        if all(_fits(described.get(name, ()), wanted) for name, wanted in filters.items())
    )
    if required and rows and not documents:
        raise UsageError(f"{misfit(filters, corpus=corpus)}: {_remedy(filters, list(values.values()))}")
    return Choice(documents=documents, narrow=2 * len(documents) < len(rows))


def _remedy(filters: Mapping[str, Sequence[str]], described: Sequence[Mapping[str, Mapping[str, bool]]]) -> str:
    """Return the values that documents have of the names that match nothing, or that the filters match apart."""
    lists = []
    for name, wanted in filters.items():
        every = [one.get(name, {}) for one in described]
        if not any(_fits(values, wanted) for values in every):
            found = sorted({value for values in every for value, told in values.items() if told and value})
            more = f" and {len(found) - NAMED} others" if len(found) > NAMED else ""
            lists.append(f"the values of {name} are {', '.join(map(_shortened, found[:NAMED]))}{more}")
    if not lists:
        return "each is found, but in no one document"
    return f"{'; '.join(lists)}. `*` matches any text, as in 'rep*'"


def _shortened(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def misfit(filters: Mapping[str, Sequence[str]], *, corpus: str) -> str:
    """Return what is wrong with filters that no document matches."""
    wanted = " and ".join(f"{name} {' or '.join(map(_shortened, texts[:NAMED]))}" for name, texts in filters.items())
    return f"no document of corpus {corpus!r} has {wanted}"


def _texts(name: object, value: object) -> tuple[str, ...]:
    many = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    texts = {_text(text) for text in many if isinstance(text, str | int | float)}
    if not many or not all(isinstance(text, str | int | float) for text in many):
        raise UsageError(
            f"invalid value {value!r} of filter {name!r}: use a string, a number, True or False, or several of them"
        )
    return tuple(sorted(texts))


def _text(value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _values(row: Mapping[str, str]) -> dict[str, dict[str, bool]]:
    """Return a document's filter values by name, and whether errors tell them.

    A document has its caller's id and its uid, and its source is a path or the file's name alone. Metadata of these
    names adds to them.
    """
    source = row["source"] or ""
    own = ((row["uid"], row["id"] or row["uid"]), (row["title"] or "",), (Path(source).name, source))
    values = {name: {text: text == texts[-1] for text in texts} for name, texts in zip(OWN, own, strict=True)}
    for name, value in json.loads(row["metadata"] or "{}").items():
        values.setdefault(name, {})[_text(value)] = True
    return values


def _fits(values: Collection[str], wanted: Sequence[str]) -> bool:
    """Whether a value matches one of the wanted patterns, in which `*` stands for anything."""
    patterns = [".*".join(map(re.escape, re.split(r"\*+", text))) for text in wanted]
    return any(re.fullmatch(pattern, value, re.DOTALL) for pattern in patterns for value in values)
