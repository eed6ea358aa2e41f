"""Files and folders read as documents, one file in memory at a time; what can't be used is named."""

import codecs
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias, TypeGuard

from hgmem.errors import DocumentError
from hgmem.inputs import Document, Scalar, Skipped

SUFFIXES = (".txt", ".md", ".json", ".jsonl")
_USABLE = " ".join(SUFFIXES)
_MARK = "\ufeff"
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<title>.*)")
_FENCES = ("```", "~~~")
_TITLE_WITHIN = 20_000  # characters that are searched for a heading
_TITLE_LENGTH = 120

Name: TypeAlias = str | os.PathLike[str]


Item: TypeAlias = Document | Skipped


class _UnusableError(Exception):
    """Why a file or a record is skipped."""


def load(paths: Name | Iterable[Name], *, max_bytes: int, text_field: str = "text") -> Iterator[Item]:
    """Return the documents of files and folders and, in between, what was skipped; reads as you go.

    Folders are searched to the bottom in order of names; hidden things and links to folders are passed over.
    Raises `DocumentError` at once for a path that does not exist, and at the end if there was no document.
    """
    listed = _listed(paths)
    files = discover(listed, max_bytes=max_bytes)

    def items() -> Iterator[Item]:
        seen: set[str] = set()
        skipped: list[Skipped] = []
        for found in files:
            for read_item in (found,) if isinstance(found, Skipped) else read(found, text_field=text_field):
                item = _once(read_item, seen)
                skipped += [item] if isinstance(item, Skipped) else []
                yield item
        if not seen:
            raise DocumentError(_nothing(listed, skipped))

    return items()


def _nothing(listed: Sequence[Path], skipped: Sequence[Skipped]) -> str:
    shown = ", ".join(repr(_printable(path)) for path in listed) or "no paths at all"
    reasons = "".join(f", {one.path} {one.reason}" for one in skipped[:3])
    return f"nothing usable in {shown}{reasons}: documents are {_USABLE} files with text"


def discover(paths: Name | Iterable[Name], *, max_bytes: int) -> list[Path | Skipped]:
    """Return the files to read, absolute and each once, and what is skipped unread, in order."""
    found: dict[str, Path | Skipped] = {}
    for path in _listed(paths):
        for item in _candidates(_existing(path)):
            kept = item if isinstance(item, Skipped) else _checked(item, max_bytes)
            found.setdefault(_printable(item.path if isinstance(item, Skipped) else item), kept)
    return list(found.values())


def read(path: Path, *, text_field: str = "text") -> Iterator[Item]:
    """Return the documents of one file.

    Text and Markdown files are one document, JSON files an object or a list of them, JSON Lines files an
    object a line; its text is in `text_field`, `id` and `title` are used, other scalars are metadata.
    """
    source = str(Path(os.path.abspath(path)))
    try:
        text = _decode(Path(path).read_bytes())
        if not text.strip():
            raise _UnusableError("empty")
        match path.suffix.lower():
            case ".jsonl":
                yield from _lines(text, source, text_field)
            case ".json":
                yield from _json(text, source, text_field)
            case _:
                yield Document(id=source, text=text, title=_heading(text) or path.stem, source=source)
    except OSError as error:
        yield Skipped(path=source, reason=_why(error))
    except _UnusableError as error:
        yield Skipped(path=source, reason=str(error))


def _listed(paths: Name | Iterable[Name]) -> list[Path]:
    many = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not all(map(os.fspath, many)):
        raise DocumentError("a path is empty")  # it would stand for the working directory
    return [Path(path).expanduser() for path in many]


def _existing(path: Path) -> Path:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        if not os.path.islink(path):
            raise DocumentError(f"{_printable(path)!r} does not exist") from None
    except OSError:
        pass  # it is there, but can't be looked at: skipped later, with the reason
    return Path(os.path.abspath(path))


def _candidates(path: Path) -> Iterator[Path | Skipped]:
    """Yield the files of known suffix under a folder; a path that is no folder is a candidate as it is."""
    if not os.path.isdir(path):
        yield path
        return
    folders = [path]
    while folders:
        here = folders.pop()
        try:
            with os.scandir(here) as entries:
                inside = sorted((entry for entry in entries if entry.name[0] != "."), key=attrgetter("name"))
        except OSError as error:
            yield Skipped(path=_printable(here), reason=_why(error))
            continue
        folders += [here / entry.name for entry in reversed(inside) if entry.is_dir(follow_symlinks=False)]
        files = (here / entry.name for entry in inside if entry.name.lower().endswith(SUFFIXES))
        yield from (file for file in files if not os.path.isdir(file))


def _checked(path: Path, max_bytes: int) -> Path | Skipped:
    try:
        reason = _objection(path, os.stat(path), max_bytes)
    except OSError as error:
        reason = _why(error)
    return Skipped(path=_printable(path), reason=reason) if reason else path


def _objection(path: Path, status: os.stat_result, max_bytes: int) -> str:
    if path.suffix.lower() not in SUFFIXES:
        return f"suffix {path.suffix!r} is not one of {_USABLE}"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"  # reading a pipe might never end
    if status.st_size > max_bytes:
        return f"{status.st_size:,} bytes are above the limit of {max_bytes:,} (max_file_bytes)"
    if _printable(path) != str(path):
        return "the file's name is not UTF-8"
    return "" if status.st_size else "empty"


def _printable(path: Name) -> str:
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _once(item: Item, seen: set[str]) -> Item:
    if isinstance(item, Skipped):
        return item
    if item.id in seen:
        return Skipped(path=item.source, reason=f"id {item.id!r} was there before")
    seen.add(item.id)
    return item


def _decode(data: bytes) -> str:
    """Return the text without its byte-order mark; line ends stay as they are."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8")
    except UnicodeDecodeError as error:
        if not wide and b"\0" in data:
            raise _UnusableError("binary: it holds null bytes") from None
        name = "UTF-16" if wide else "UTF-8"
        raise _UnusableError(f"not {name} at byte {error.start}: save it as UTF-8") from None
    if "\0" in text:
        raise _UnusableError("binary: it holds null bytes")
    return text.removeprefix(_MARK)


def _heading(text: str) -> str:
    """Return the first Markdown heading that is not in a code block, else `''`."""
    fenced = False
    for line in text[:_TITLE_WITHIN].splitlines():
        if line.lstrip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced and (match := _HEADING.fullmatch(line)):
            title = match["title"].strip()
            bare = title.rstrip("#")  # Markdown's closing marks stand apart: those of `# C#` belong to it
            if title := title if bare and not bare[-1].isspace() else bare.strip():
                return title[:_TITLE_LENGTH]
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a record stands; number 0 is the only record of a file."""

    path: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.path}#{self.number}" if self.number else self.path

    @property
    def title(self) -> str:
        return Path(self.path).stem + (f" #{self.number}" if self.number else "")


def _lines(text: str, source: str, text_field: str) -> Iterator[Item]:
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would cut inside strings as well
        if line.strip():
            place = _Place(path=source, number=number)
            try:
                yield _item(_parsed(line, number), place, text_field)
            except _UnusableError as error:
                yield Skipped(path=str(place), reason=str(error))


def _json(text: str, source: str, text_field: str) -> Iterator[Item]:
    whole = _parsed(text)
    if not isinstance(whole, list):
        yield _item(whole, _Place(path=source), text_field)
        return
    if not whole:
        raise _UnusableError("empty")
    for number, record in enumerate(whole, start=1):
        yield _item(record, _Place(path=source, number=number), text_field)


def _item(record: object, place: _Place, text_field: str) -> Item:
    try:
        return _document(record, place, text_field)
    except _UnusableError as error:
        return Skipped(path=str(place), reason=str(error))


def _parsed(text: str, line: int = 0) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno} column {error.colno}"
        raise _UnusableError(f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise _UnusableError("JSON nested too deeply") from None
    except ValueError as error:
        raise _UnusableError(f"not JSON: {error}") from None


def _document(record: object, place: _Place, text_field: str) -> Document:
    if not isinstance(record, dict):
        raise _UnusableError("neither an object nor a list of objects")
    text = record.get(text_field)
    if not isinstance(text, str):
        fields = ", ".join(map(repr, record)) or "none"
        raise _UnusableError(f"no text in field {text_field!r}; its fields are {fields}")
    if not (text := text.removeprefix(_MARK)).strip():
        raise _UnusableError("empty")
    used = {"id", "title", text_field}
    document = Document(
        id=_id(record.get("id")) or str(place),
        text=text,
        title=_line(record.get("title")) or _heading(text) or place.title,
        source=place.path,
        metadata={name: value for name, value in record.items() if name not in used and _is_scalar(value)},
    )
    _check_encodable(document)
    return document


def _id(value: object) -> str:
    value = "" if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _UnusableError(f"id {value!r} is neither text nor a whole number")
    return str(value).strip()


def _line(value: object) -> str:
    return " ".join(value.split())[:_TITLE_LENGTH] if isinstance(value, str) else ""


def _is_scalar(value: object) -> TypeGuard[Scalar]:
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _check_encodable(document: Document) -> None:
    """Raise if an escape left half a character: no database takes that."""
    extra = document.metadata
    try:
        "".join([document.id, document.text, document.title, *extra, *map(str, extra.values())]).encode()
    except UnicodeEncodeError:
        raise _UnusableError("it holds half a surrogate pair, such as \\ud83d alone") from None
