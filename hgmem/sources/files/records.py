"""Convert JSON records to documents, and records of other formats with the same rules."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from hgmem.sources.files.decoding import MARK, heading, title_line
from hgmem.sources.files.items import Item, UnusableError, one_line
from hgmem.text.segmentation import has_half_pair
from hgmem.values.inputs import Document, Scalar, Skipped

_FIELDS_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a record, with number 0 for the only record of a file."""

    path: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.path}#{self.number}" if self.number else self.path

    @property
    def title(self) -> str:
        """The file's name without its suffix, followed by the number."""
        return Path(self.path).stem + (f" #{self.number}" if self.number else "")


def lines(text: str, source: str, text_field: str) -> Iterator[Item]:
    """Yield a document for each line of JSON Lines, numbered from 1."""
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would also split inside strings
        if line.strip():
            place = Place(path=source, number=number)
            try:
                yield item(_parsed(line, number), place, text_field)
            except UnusableError as error:
                yield Skipped(path=str(place), reason=str(error))


def objects(text: str, source: str, text_field: str) -> Iterator[Item]:
    """Yield the document of a JSON object, or those of a list, numbered from 1."""
    whole = _parsed(text)
    if not isinstance(whole, list):
        yield item(whole, Place(path=source), text_field)
        return
    if not whole:
        raise UnusableError("empty")
    for number, record in enumerate(whole, start=1):
        yield item(record, Place(path=source, number=number), text_field)


def item(record: object, place: Place, text_field: str) -> Item:
    """Return the record's document, or why it is skipped."""
    try:
        return _document(record, place, text_field)
    except UnusableError as error:
        return Skipped(path=str(place), reason=one_line(str(error)))


def _parsed(text: str, line: int = 0) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno} column {error.colno}"
        raise UnusableError(f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise UnusableError("JSON nested too deeply") from None
    except ValueError as error:
        raise UnusableError(f"not JSON: {error}") from None


def _document(record: object, place: Place, text_field: str) -> Document:
    if not isinstance(record, dict):
        raise UnusableError("neither an object nor a list of objects")
    text = record.get(text_field)
    if not isinstance(text, str):
        raise UnusableError(f"no text in field {text_field!r}; its fields are {_named(record)}")
    if not (text := text.removeprefix(MARK)).strip():
        raise UnusableError("empty")
    used = {"id", "title", text_field}
    title = record.get("title")
    document = Document(
        id=_id(record.get("id")) or str(place),
        text=text,
        title=(title_line(title) if isinstance(title, str) else "") or heading(text) or place.title,
        source=place.path,
        metadata={name: value for name, value in record.items() if name not in used and _is_scalar(value)},
    )
    _check_characters(document)
    return document


def _named(record: Mapping[str, object]) -> str:
    named = ", ".join(map(repr, list(record)[:_FIELDS_NAMED])) or "none"
    return named if len(record) <= _FIELDS_NAMED else f"{named} and {len(record) - _FIELDS_NAMED} more"


def _id(value: object) -> str:
    value = "" if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnusableError(f"id {value!r} is neither text nor a whole number")
    return str(value).strip()


def _is_scalar(value: object) -> TypeGuard[Scalar]:
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _check_characters(document: Document) -> None:
    """Raise `UnusableError` for a null character or an unpaired surrogate."""
    extra = document.metadata
    whole = "".join([document.id, document.text, document.title, *extra, *map(str, extra.values())])
    if "\0" in whole:
        raise UnusableError("it contains a null character, such as \\u0000")
    if has_half_pair(whole):
        raise UnusableError("it has an unpaired surrogate, such as \\ud83d")
