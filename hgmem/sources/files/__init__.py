"""Read files and folders as documents, one file at a time, and report unusable ones."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.sources.files.converter_subprocess import SECONDS, ConverterProcess
from hgmem.sources.files.items import Item, Name, printable
from hgmem.sources.files.reading import USABLE, discover, items_of, listed
from hgmem.values.inputs import Skipped

__all__ = ["discover", "load", "read"]


def load(
    paths: Name | Iterable[Name], *, max_bytes: int, max_seconds: float = SECONDS, text_field: str = "text"
) -> Iterator[Item]:
    """Return an iterator over the documents of files and folders, and the skipped items in between.

    Folders are searched recursively, in order of names. Hidden files and symlinked folders are ignored. Raises
    `DocumentError` at once for a path that does not exist, and at the end if there was no document.
    """
    named = listed(paths)
    files = discover(named, max_bytes=max_bytes)

    def items() -> Iterator[Item]:
        seen: set[str] = set()
        skipped: list[Skipped] = []
        with ConverterProcess(seconds=max_seconds) as converter:
            for found in files:
                for read_item in _of(found, converter, text_field):
                    item = _once(read_item, seen)
                    skipped += [item] if isinstance(item, Skipped) else []
                    yield item
        if not seen:
            raise DocumentError(_nothing(named, skipped))

    return items()


def read(path: Path, *, text_field: str = "text") -> Iterator[Item]:
    """Return the documents of one file.

    A JSON file holds an object or a list of them, a JSON Lines file one object per line, and a CSV file one record per
    row. Their text is in `text_field`; `id` and `title` are used, and other scalars become metadata. Any other file is
    one document.
    """
    with ConverterProcess() as converter:
        yield from items_of(path, converter=converter, text_field=text_field)


def _of(found: Path | Skipped, converter: ConverterProcess, text_field: str) -> Iterable[Item]:
    return (found,) if isinstance(found, Skipped) else items_of(found, converter=converter, text_field=text_field)


def _once(item: Item, seen: set[str]) -> Item:
    if isinstance(item, Skipped):
        return item
    if item.id in seen:
        return Skipped(path=item.source, reason=f"duplicate id {item.id!r}")
    seen.add(item.id)
    return item


def _nothing(named: Sequence[Path], skipped: Sequence[Skipped]) -> str:
    shown = ", ".join(repr(printable(path)) for path in named) or "no paths given"
    reasons = "".join(f", {one.path} {one.reason}" for one in skipped[:3])
    return f"nothing to read in {shown}{reasons}: supported documents are {USABLE} files with text"
