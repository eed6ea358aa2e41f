"""Files and folders read as documents, one file in memory at a time; what can't be used is named."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.inputs import Skipped
from hgmem.load.apart import SECONDS, Apart
from hgmem.load.discovery import USABLE, discover, listed
from hgmem.load.items import Item, Name, printable
from hgmem.load.reading import items_of

__all__ = ["discover", "load", "read"]


def load(
    paths: Name | Iterable[Name], *, max_bytes: int, max_seconds: float = SECONDS, text_field: str = "text"
) -> Iterator[Item]:
    """Return the documents of files and folders and, in between, what was skipped; reads as you go.

    Folders are searched to the bottom in order of names; hidden things and links to folders are passed over.
    Raises `DocumentError` at once for a path that does not exist, and at the end if there was no document.
    """
    named = listed(paths)
    files = discover(named, max_bytes=max_bytes)

    def items() -> Iterator[Item]:
        seen: set[str] = set()
        skipped: list[Skipped] = []
        with Apart(seconds=max_seconds) as apart:
            for found in files:
                for read_item in _of(found, apart, text_field):
                    item = _once(read_item, seen)
                    skipped += [item] if isinstance(item, Skipped) else []
                    yield item
        if not seen:
            raise DocumentError(_nothing(named, skipped))

    return items()


def read(path: Path, *, text_field: str = "text") -> Iterator[Item]:
    """Return the documents of one file.

    A JSON file is an object or a list of them, a JSON Lines file an object a line, a CSV file a row each; their text
    is in `text_field`, `id` and `title` are used, other scalars are metadata. Any other file is one document.
    """
    with Apart() as apart:
        yield from items_of(path, apart=apart, text_field=text_field)


def _of(found: Path | Skipped, apart: Apart, text_field: str) -> Iterable[Item]:
    return (found,) if isinstance(found, Skipped) else items_of(found, apart=apart, text_field=text_field)


def _once(item: Item, seen: set[str]) -> Item:
    if isinstance(item, Skipped):
        return item
    if item.id in seen:
        return Skipped(path=item.source, reason=f"id {item.id!r} was there before")
    seen.add(item.id)
    return item


def _nothing(named: Sequence[Path], skipped: Sequence[Skipped]) -> str:
    shown = ", ".join(repr(printable(path)) for path in named) or "no paths at all"
    reasons = "".join(f", {one.path} {one.reason}" for one in skipped[:3])
    return f"nothing usable in {shown}{reasons}: documents are {USABLE} files with text"
