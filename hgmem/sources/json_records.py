"""Fields of other programs' JSON records, with the place in each error."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from hgmem.errors import DocumentError, UsageError
from hgmem.text.segmentation import storable


class Record:
    """An object in a JSON file, and where it stands."""

    def __init__(self, value: object, *, path: Path, place: str) -> None:
        self.path, self.place = path, place
        if not isinstance(value, dict):
            self.fail("it is not an object")
        self.values: dict[str, Any] = value

    def fail(self, fact: str, field: str = "") -> NoReturn:
        """Raise `DocumentError` with the file, the place and the field."""
        named = f", field {field!r}" if field else ""
        raise DocumentError(f"{str(self.path)!r}, {self.place}{named}: {fact}")

    def has(self, field: str) -> bool:
        """Return whether the field is there and not null."""
        return self.values.get(field) is not None

    def text(self, *fields: str, default: str | None = None) -> str:
        """Return the first field that is there as text. Numbers are written out, and lists joined by a semicolon."""
        for field in fields:
            if self.has(field):
                return self._text(self.values[field], field)
        if default is None:
            self.fail("it is missing", fields[0])
        return default

    def texts(self, field: str) -> list[str]:
        """Return a field as a list of texts, empty if it is missing."""
        value = self.values.get(field)
        values = value if isinstance(value, list) else [] if value is None else [value]
        return [self._text(item, field) for item in values]

    def items(self, field: str) -> list[Any]:
        """Return a field that is a list."""
        value = self.values.get(field)
        if not isinstance(value, list):
            self.fail("it is not a list", field)
        return value

    def _text(self, value: object, field: str) -> str:
        if isinstance(value, list) and value:
            return "; ".join(self._text(item, field).strip() for item in value)
        if not isinstance(value, str | int | float):
            self.fail("it is not a text", field)
        return str(value)


def json_line(text: str, number: int, path: Path) -> Any:
    """Return what a line of a JSON Lines file holds."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{str(path)!r}, line {number}: not JSON: {error}") from None
    except RecursionError:
        raise DocumentError(f"{str(path)!r}, line {number}: JSON nested too deeply") from None


def line_record(text: str, number: int, path: Path) -> Record:
    """Return the object in a line of a JSON Lines file."""
    return Record(json_line(text, number, path), path=path, place=f"line {number}")


def records(values: object, path: Path, *, what: str) -> Iterator[Record]:
    """Yield the objects of a list, with their numbers from 1. `what` names one of them."""
    if not isinstance(values, list):
        raise DocumentError(f"{str(path)!r}: not a list: it must hold a JSON list of objects")
    for number, value in enumerate(values, start=1):
        yield Record(value, path=path, place=f"{what} {number}")


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names, each made unique by a number in brackets from its second use."""
    seen: set[str] = set()
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in seen:
            number += 1
            unique = f"{name} ({number})"
        seen.add(unique)
        found.append(unique)
    return found


def text_of(path: Path) -> str:
    """Return a file's text, its line ends as line feeds, without a byte-order mark."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{str(path)!r} does not exist: correct the path, or add the file") from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{str(path)!r}, byte {error.start}: not UTF-8: save it as UTF-8") from error
    except OSError as error:
        raise DocumentError(f"{str(path)!r}: {error.strerror or error}") from error
    if not storable(text):
        raise DocumentError(f"{str(path)!r}: it has a null character or an unpaired surrogate: remove it")
    return text


def json_of(path: Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"{str(path)!r}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from error
    except RecursionError:
        raise DocumentError(f"{str(path)!r}: JSON nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise DocumentError(f"{str(path)!r}: {error}") from None


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers from 1."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            yield number, line
