"""Convert CSV rows to documents."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from hgmem.sources.files.items import Item, UnusableError
from hgmem.sources.files.records import Place, item
from hgmem.values.inputs import Scalar, Skipped

MOST_ROWS = 1_000_000
MOST_COLUMNS = 1_000
_DELIMITERS = ",;\t|"
_SAMPLE = 20_000  # characters used to detect the delimiter
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")


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
                yield _item(names, fields, place=Place(path=source, number=number), text_field=text_field)
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


def _item(names: Sequence[str], fields: Sequence[str], *, place: Place, text_field: str) -> Item:
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
