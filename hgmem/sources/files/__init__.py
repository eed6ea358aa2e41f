"""Read files and folders as documents, one file at a time, and report unusable ones."""

import os
import stat
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from hgmem.errors import DocumentError, DocumentWarning
from hgmem.sources.files.converter_process import SECONDS, ConverterProcess
from hgmem.sources.files.items import (
    SUFFIXES,
    Converted,
    FormatName,
    Item,
    PathLike,
    UnusableError,
    decode,
    format_of,
    heading,
    one_line,
    printable,
    why,
)
from hgmem.sources.files.records import lines, objects, rows
from hgmem.text.language import counted
from hgmem.values.inputs import Document, Skipped

USABLE = " ".join(SUFFIXES)
OTHERS = 5  # other suffixes that a warning names


def load(
    paths: PathLike | Iterable[PathLike], *, max_bytes: int, max_seconds: float = SECONDS, text_field: str = "text"
) -> Iterator[Item]:
    """Return an iterator over the documents of files and folders, and the skipped items in between.

    Folders are searched recursively, in order of names. Hidden files and symlinked folders are ignored; a
    `DocumentWarning` counts files of other formats. Raises `DocumentError` at once for a path that does not exist, and
    at the end if there was no document.
    """
    named = _listed(paths)
    files = discover(named, max_bytes=max_bytes)

    def items() -> Iterator[Item]:
        seen: dict[str, str] = {}
        skipped: list[Skipped] = []
        with ConverterProcess(seconds=max_seconds) as converter:
            for found in files:
                for read_item in _of(found, converter, text_field):
                    item = once(read_item, seen)
                    skipped += [item] if isinstance(item, Skipped) else []
                    yield item
        if not seen:
            raise DocumentError(_nothing(named, skipped))

    return items()


def discover(paths: PathLike | Iterable[PathLike], *, max_bytes: int) -> list[Path | Skipped]:
    """Return absolute paths of the files to read, without duplicates, and the skipped ones, in order.

    A `DocumentWarning` counts files of other formats in folders, unless they hold nothing else.
    """
    found: dict[str, Path | Skipped] = {}
    others: Counter[str] = Counter()
    for path in _listed(paths):
        for item in _candidates(_existing(path), others):
            kept = item if isinstance(item, Skipped) else _checked(item, max_bytes)
            found.setdefault(printable(item.path if isinstance(item, Skipped) else item), kept)
    if others and found:
        number = counted(others.total(), "file of another format is", "files of other formats are")
        suffixes = ", ".join(f"{suffix} ({many})" for suffix, many in others.most_common(OTHERS))
        warnings.warn(f"{number} left out: {suffixes}", DocumentWarning, stacklevel=2)
    return list(found.values())


def items_of(path: Path, *, converter: ConverterProcess, text_field: str) -> Iterator[Item]:
    """Yield the file's documents and skipped parts, reporting every problem as a skipped item."""
    source = str(Path(os.path.abspath(path)))
    found = format_of(path)
    try:
        if found.packages:
            yield from _converted(converter.converted(Path(source), found.name), source)
        else:
            yield from _parsed(decode(Path(path).read_bytes()), source, name=found.name, text_field=text_field)
    except OSError as error:
        yield Skipped(path=source, reason=why(error))
    except MemoryError:
        yield Skipped(path=source, reason="needs more memory than available: split it")
    except UnusableError as error:
        yield Skipped(path=source, reason=one_line(str(error)))


def _parsed(text: str, source: str, *, name: FormatName, text_field: str) -> Iterator[Item]:
    if not text.strip():
        raise UnusableError("empty")
    match name:
        case "jsonl":
            yield from lines(text, source, text_field)
        case "json":
            yield from objects(text, source, text_field)
        case "table":
            yield from rows(text, source, text_field)
        case _:
            yield Document(id=source, text=text, title=heading(text) or Path(source).stem, source=source)


def _converted(found: Converted, source: str) -> Iterator[Item]:
    title = found.title or Path(source).stem
    yield Document(id=source, text=found.text, title=title, source=source, metadata=found.metadata)
    for page, reason in found.unread.items():
        yield Skipped(path=f"{source}#{page}", reason=reason)


def _of(found: Path | Skipped, converter: ConverterProcess, text_field: str) -> Iterable[Item]:
    return (found,) if isinstance(found, Skipped) else items_of(found, converter=converter, text_field=text_field)


def once(item: Item, seen: dict[str, str]) -> Item:
    """Return the item, or why it is skipped if a document of that id (with its path in `seen`) came before."""
    if isinstance(item, Skipped):
        return item
    if item.id in seen:
        first = seen[item.id]
        return Skipped(path=item.source, reason=f"duplicate id {item.id!r}, which {first} has: make ids unique")
    seen[item.id] = item.source
    return item


def _nothing(named: Sequence[Path], skipped: Sequence[Skipped]) -> str:
    places = ", ".join(repr(printable(path)) for path in named) or "no paths given"
    reasons = "; ".join(f"{os.path.basename(item.path)}: {item.reason}" for item in skipped[:3])
    return f"nothing to read in {places}: {reasons or f'supported documents are {USABLE} files'}"


def _listed(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Return the paths as a list, or raise `DocumentError` for an empty one."""
    many = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not all(map(os.fspath, many)):
        raise DocumentError("a path is empty")  # an empty path would mean the working directory
    return [Path(path).expanduser() for path in many]


def _existing(path: Path) -> Path:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        if not os.path.islink(path):
            raise DocumentError(f"{printable(path)!r} does not exist") from None
    except OSError:
        pass  # it exists but is inaccessible: skipped later with the reason
    return Path(os.path.abspath(path))


def _candidates(path: Path, others: Counter[str]) -> Iterator[Path | Skipped]:
    """Yield the files with known suffixes under a folder, or the path itself if it is not a folder.

    The others are counted by suffix in `others`.
    """
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
            yield Skipped(path=printable(here), reason=why(error))
            continue
        folders += [here / entry.name for entry in reversed(inside) if entry.is_dir(follow_symlinks=False)]
        for file in (here / entry.name for entry in inside):
            if os.path.isdir(file):
                continue
            if file.name.lower().endswith(SUFFIXES):
                yield file
            elif os.path.isfile(file):
                others[file.suffix.lower() or "no suffix"] += 1


def _checked(path: Path, max_bytes: int) -> Path | Skipped:
    try:
        reason = _objection(path, os.stat(path), max_bytes)
    except OSError as error:
        reason = why(error)
    return Skipped(path=printable(path), reason=reason) if reason else path


def _objection(path: Path, status: os.stat_result, max_bytes: int) -> str:
    if path.suffix.lower() not in SUFFIXES:
        return f"suffix {path.suffix!r} is not supported: use {USABLE}"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"  # reading a pipe might never end
    if status.st_size > max_bytes:
        return f"{status.st_size:,} bytes are above the limit of {max_bytes:,}: raise HGMEM_MAX_FILE_BYTES"
    if printable(path) != str(path):
        return "its file name is not UTF-8"
    return format_of(path).missing if status.st_size else "empty"
