"""Convert JSON records and the rows of tables to documents, by the same rules."""

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from hgmem.errors import DocumentWarning
from hgmem.sources.files.items import MARK, Item, UnusableError, heading, one_line, title_line
from hgmem.text.segmentation import has_half_pair
from hgmem.values.inputs import Document, Scalar, Skipped

MOST_ROWS = 1_000_000
MOST_COLUMNS = 1_000
_DELIMITERS = ",;\t|"
_SAMPLE = 20_000  # characters used to detect the delimiter
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_FIELDS_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlace:
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
    told = False
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would also split inside strings
        if line.strip():
            place = RecordPlace(path=source, number=number)
            try:
                record = _parsed(line, number)
                told = told or _warned(record, source)
                yield item(record, place, text_field)
            except UnusableError as error:
                yield Skipped(path=str(place), reason=str(error))


def objects(text: str, source: str, text_field: str) -> Iterator[Item]:
    """Yield the document of a JSON object, or those of a list, numbered from 1."""
    whole = _parsed(text)
    if not isinstance(whole, list):
        yield item(whole, RecordPlace(path=source), text_field)
        return
    if not whole:
        raise UnusableError("empty")
    any(_warned(record, source) for record in whole)  # once
    for number, record in enumerate(whole, start=1):
        yield item(record, RecordPlace(path=source, number=number), text_field)


def item(record: object, place: RecordPlace, text_field: str) -> Item:
    """Return the record's document, or why it is skipped."""
    try:
        return _document(record, place, text_field)
    except UnusableError as error:
        return Skipped(path=str(place), reason=one_line(str(error)))


def _warned(record: object, source: str) -> bool:
    """Return whether a record looks like a message of a conversation, and warn that it becomes a document."""
    if not isinstance(record, dict) or not isinstance(record.get("speaker"), str):
        return False
    warnings.warn(
        f"{source}: records with a field 'speaker' become a document each: to read them as messages, pass "
        "--conversations (`load_conversations`)",
        DocumentWarning,
        stacklevel=2,
    )
    return True


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


def _document(record: object, place: RecordPlace, text_field: str) -> Document:
    if not isinstance(record, dict):
        raise UnusableError("neither an object nor a list of objects")
    text = record.get(text_field)
    if not isinstance(text, str):
        raise UnusableError(
            f"no text in field {text_field!r}; its fields are {_named(record)}: set HGMEM_TEXT_FIELD to the one with "
            "the text, or read messages with --conversations"
        )
    if not (text := text.removeprefix(MARK)).strip():
        raise UnusableError("empty")
    used = {"id", "title", text_field}
    within = record.get("metadata")
    fields = {**within, **record} if isinstance(within, dict) else record
    title = record.get("title")
    document = Document(
        id=_id(record.get("id")) or str(place),
        text=text,
        title=(title_line(title) if isinstance(title, str) else "") or heading(text) or place.title,
        source=place.path,
        metadata={name: value for name, value in fields.items() if name not in used and _is_scalar(value)},
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


def rows(text: str, source: str, text_field: str) -> Iterator[Item]:
    """Yield a document for each row under the header, numbered as in a spreadsheet.

    The text is in the column `text_field`. Without that column, it is the whole row as "column: value" lines.
    """
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # the text is in memory already
    found = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, source))
    names = _columns(next(found, []))
    number = 1
    try:
        for number, fields in enumerate(found, start=2):
            if number > MOST_ROWS:
                raise UnusableError(f"rows from {number:,} on are skipped: split the file")
            if any(map(str.strip, fields)):
                yield _item(names, fields, place=RecordPlace(path=source, number=number), text_field=text_field)
    except csv.Error as error:
        raise UnusableError(f"not CSV after row {number}: {error}") from None
    if number == 1:
        raise UnusableError("empty: no rows below the header")


def _delimiter(text: str, source: str) -> str:
    """Return the delimiter that splits the first rows into the most fields, equally many in each row."""
    if source.lower().endswith(".tsv"):
        return "\t"
    return max(_DELIMITERS, key=lambda delimiter: _fit(text[:_SAMPLE], delimiter))


def _fit(sample: str, delimiter: str) -> tuple[int, float]:
    try:
        lengths = [len(fields) for fields in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter) if fields]
    except csv.Error:
        return 0, 0.0
    first = lengths[0] if lengths else 0
    alike = lengths.count(first) / len(lengths) if first > 1 else 0.0
    return int(alike * 10), first * alike


def _columns(header: Sequence[str]) -> list[str]:
    """Return distinct column names, with a number for each unnamed column."""
    if len(header) > MOST_COLUMNS:
        raise UnusableError(f"{len(header):,} columns are above the limit of {MOST_COLUMNS:,}")
    names: dict[str, None] = {}
    for number, given in enumerate(map(str.strip, header), start=1):
        name, again = given or f"column {number}", 1
        while name in names:
            again += 1
            name = f"{given} ({again})"
        names[name] = None
    return list(names)


def _item(names: Sequence[str], fields: Sequence[str], *, place: RecordPlace, text_field: str) -> Item:
    if len(fields) > len(names):
        reason = f"{len(fields):,} fields for {len(names):,} columns: check quotes and delimiters"
        return Skipped(path=str(place), reason=reason)
    filled = {name: value for name, value in zip(names, fields, strict=False) if value.strip()}
    used = {"id", "title", text_field}
    record: dict[str, object] = {name: value if name in used else _scalar(value) for name, value in filled.items()}
    whole = "\n".join(f"{name}: {value}" for name, value in filled.items())
    record[text_field] = filled.get(text_field, "") if text_field in names else whole
    return item(record, place, text_field)


def _scalar(value: str) -> Scalar:
    """Return the text as a number if the number is written the same way, else the text."""
    if _WHOLE.fullmatch(value):
        return int(value)
    if _DECIMAL.fullmatch(value) and repr(float(value)) == value:
        return float(value)
    return value
